"""Components of variance of a nested experiment, by the analysis of variance of unweighted means.

A tree has a value at each leaf and a level of grouping for each kind of thing that adds an error of
its own. From the leaves up, what the means of one level differ by is compared with what the levels
below explain of it (Searle, Casella and McCulloch, Variance Components, 4.2): unbiased where groups
are alike in size.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import pi, sqrt
from statistics import fmean, median

_NORMAL_DEVIATION = 0.6745
"""Median of |x - mean| of a normal value, in standard deviations."""
_NORMAL = _NORMAL_DEVIATION * sqrt(2)
"""Of |x - y| of two."""
_MOST_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Mean:
    """The mean of a group, and the part of its variance that comes from what is below it."""

    value: float
    noise: float


def components(tree, leaf_noise, depth):
    """The variance that each level adds, from the leaves' own grouping up to the top: `depth` of
    them.

    `tree` is lists within lists, `depth` deep, of leaf values; `leaf_noise(leaf)` gives (value,
    noise variance). None stands for a level at which no group has two members.
    """
    variances = []
    groups = _groups(tree, depth)
    means = [[Mean(*leaf_noise(leaf)) for leaf in group] for group in groups]
    for level in range(depth):
        variance = _between(means)
        variances.append(variance)
        upper = [_merged(group, variance or 0.0) for group in means]
        if level + 1 < depth:
            means = _regrouped(upper, _groups(tree, depth - level - 1))
    return variances


def _groups(tree, depth):
    """The lists at the bottom of the first `depth` levels, in order."""
    lists = [tree]
    for _ in range(depth - 1):
        lists = [inner for outer in lists for inner in outer]
    return [group for group in lists if group]


def _regrouped(means, groups):
    rest = iter(means)
    return [[next(rest) for inner in group if inner] for group in groups]


def _between(means):
    """The variance of a level's members around their groups, less their noise."""
    wide = [group for group in means if len(group) > 1]
    if not wide:
        return None
    squares = noise = freedom = 0.0
    for group in wide:
        centre = fmean(mean.value for mean in group)
        squares += sum((mean.value - centre) ** 2 for mean in group)
        noise += (len(group) - 1) * fmean(mean.noise for mean in group)
        freedom += len(group) - 1
    return (squares - noise) / freedom


def _merged(group, variance):
    noise = variance + fmean(mean.noise for mean in group)
    return Mean(fmean(mean.value for mean in group), noise / len(group))


def block_sd(groups):
    """The standard deviation of single values, from differences of neighbours in each group: no
    drift, no outliers.
    """
    differences = [abs(second - first) for group in groups for first, second in pairwise(group)]
    return median(differences) / _NORMAL if differences else 0.0


def drawn_in(groups, most=_MOST_DEVIATIONS):
    """The values with outliers drawn in: no further from their group's median than so many standard
    deviations.

    A lab that takes medians does not see them, and a mean of squares would see nothing else. The
    standard deviation is that of all groups together, by the median of absolute deviations.
    """
    centres = [median(group) for group in groups]
    deviations = [
        abs(value - centre)
        for group, centre in zip(groups, centres, strict=True)
        if len(group) > 1
        for value in group
    ]
    limit = most * median(deviations) / _NORMAL_DEVIATION if deviations else 0.0
    return [
        [min(max(value, centre - limit), centre + limit) for value in group]
        if len(group) > 1
        else list(group)
        for group, centre in zip(groups, centres, strict=True)
    ]


def median_noise(variance, count):
    """The variance of the median of `count` normal values."""
    factor = pi / 2
    return variance * factor / (count + factor - 1)


def lag_1(sequences):
    """Correlation of each value with the next of its sequence, about the mean of all; None where
    there are too few.
    """
    values = [value for sequence in sequences for value in sequence]
    neighbours = [pair for sequence in sequences for pair in pairwise(sequence)]
    if len(neighbours) < 2:
        return None
    centre = fmean(values)
    variance = fmean((value - centre) ** 2 for value in values)
    return (
        fmean((a - centre) * (b - centre) for a, b in neighbours) / variance if variance else None
    )
