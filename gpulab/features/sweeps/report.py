"""A sweep: the best value of a parameter for each variant, with its evidence.

Points are runs of their own, minutes apart: too far for close comparisons. So the candidates for
the best run once more, as contenders of one final run, in which they are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

from gpulab.core.estimate import Estimate
from gpulab.core.limits import NAME_LENGTH
from gpulab.core.text import cut
from gpulab.report.commands import Contender, Sweep
from gpulab.report.report import RunReport
from gpulab.scenario import Param
from gpulab.stats.comparison import Comparison, leaders
from gpulab.stats.statistics import Interval

MOST_FINALISTS = 8
"""Of a variant: the best point, its neighbours, and the fastest of the others."""


Finalists = Mapping[str, Sequence[Param]]
"""By variant the values that may be the best; the first has the least median."""


def contenders_of(parameter: str, finalists: Finalists) -> list[Contender]:
    """The variants of the final, in its order; those of one variant side by side."""
    contenders: dict[str, Contender] = {}
    for variant, values in finalists.items():
        for value in values:
            name = whole = f"{variant} {parameter}={value}"
            number = 1
            while len(name) > NAME_LENGTH or name in contenders:
                number += 1
                name = f"{cut(whole, NAME_LENGTH // 2)} #{number}"
            contenders[name] = Contender(name=name, variant=variant, value=value)
    return list(contenders.values())


def finalists_of(parameter: str, runs: Sequence[RunReport]) -> dict[str, list[Param]]:
    """Return the finalists of each variant that has several points: those whose interval overlaps
    the best's, and its neighbours.

    None where the values are texts: they name different work, of which none is the best.
    """
    if any(isinstance(run.params.get(parameter), str) for run in runs):
        return {}
    points = _points(parameter, runs)
    return {name: _finalists(points[name]) for name in points if len(points[name]) > 1}


def sweep_of(parameter: str, runs: Sequence[RunReport], final: RunReport | None = None) -> Sweep:
    """The sweep that the runs are; a variant that was measured at one value only has no best."""
    best: dict[str, Param] = {}
    among: dict[str, list[Param]] = {}
    paired: dict[str, bool] = {}
    finalists = finalists_of(parameter, runs)
    contenders = contenders_of(parameter, finalists)
    for name, values in finalists.items():
        ranked = None
        if final and final.is_whole:
            group = [contender for contender in contenders if contender.variant == name]
            ranked = _paired_best(group, final)
        paired[name] = ranked is not None
        among[name] = ranked or _overlapping(values[0], _points(parameter, runs)[name])
        best[name] = among[name][0]
    return Sweep(
        scenario=runs[0].scenario,
        parameter=parameter,
        best=best,
        best_among=among,
        paired=paired,
        contenders=contenders if final else [],
        final=final,
    )


_Point = tuple[Param, Estimate]


def _points(parameter: str, runs: Sequence[RunReport]) -> dict[str, list[_Point]]:
    points: dict[str, list[_Point]] = {}
    for run in runs:
        for variant in run.variants:
            if (time := variant.time_per_item) and parameter in run.params:
                points.setdefault(variant.name, []).append((run.params[parameter], time))
    return points


def _finalists(points: Sequence[_Point]) -> list[Param]:
    place = min(range(len(points)), key=lambda index: points[index][1].value)
    best, _ = points[place]
    neighbours = [value for value, _ in points[max(0, place - 1) : place + 2]]
    others = [value for value in _overlapping(best, points) if value not in neighbours]
    chosen = {best, *neighbours, *others[: MOST_FINALISTS - len(neighbours)]}
    return [best, *(value for value, _ in points if value in chosen and value != best)]


def _overlapping(best: Param, points: Sequence[_Point]) -> list[Param]:
    """The best, and the values whose interval overlaps its own, the fastest first."""
    _, highest = next(time.ends for value, time in points if value == best)
    ranked = sorted(points, key=lambda point: point[1].value)
    others = [value for value, time in ranked if value != best and time.ends[0] <= highest]
    return [best, *others]


def _paired_best(group: Sequence[Contender], final: RunReport) -> list[Param] | None:
    """The best by the final, then those statistically tied with it; None where the final did not
    compare them all.

    All are compared with the first, at a confidence that holds for all comparisons of the group
    together.
    """
    reference, *others = group
    compared = {comparison.variant: comparison for comparison in final.comparisons}
    thetas: dict[str, Interval] = {}
    for contender in others:
        theta = _theta(compared.get(contender.name), final.method.processes)
        if theta is None:
            return None
        thetas[contender.name] = theta
    values = {contender.name: contender.value for contender in group}
    return [values[name] for name in leaders(reference.name, thetas)]


def _theta(comparison: Comparison | None, processes: int) -> Interval | None:
    """The interval of log(time / time of the reference)."""
    if comparison is None or comparison.speedup is None or not comparison.speedup.has_interval:
        return None
    low, high = comparison.speedup.ends
    return Interval(-log(comparison.speedup.value), -log(high), -log(low), processes)
