"""The line of differences names what a pair of kernels was made to differ in, and says nothing of
the same code.
"""

import re

import pytest
from pairs import PAIRS, SOURCE

from gpulab.core.payloads import KernelText
from gpulab.features.kernels.differences import KernelDifference, changes
from gpulab.features.kernels.reading import read_kernel
from gpulab.features.kernels.view import difference_words

QUICK = ("tile size",)
"""Pairs of the same code that every test run looks at."""
QUICKEST = "sm_80"
"""To disassemble."""
ARCHITECTURES = (
    QUICKEST,
    *(pytest.param(arch, marks=pytest.mark.slow) for arch in ("sm_90", "sm_100")),
)


def line_of(before, after):
    made = changes([before], [after])
    return difference_words(KernelDifference(against="before", changes=made))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=[pytest.mark.slow] * (pair.cause not in QUICK)) for pair in PAIRS],
    ids=lambda pair: pair.cause,
)
def test_the_line_names_the_cause(pair, arch):
    line = line_of(*(read_kernel(pair.text(name), arch) for name in (pair.before, pair.after)))
    places = [line.find(words) for words in pair.said]
    assert -1 not in places, line
    assert places == sorted(places), line


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=[pytest.mark.slow] * (pair.cause not in QUICK)) for pair in PAIRS],
    ids=lambda pair: pair.cause,
)
def test_the_same_code_by_another_name_differs_in_nothing(pair):
    base, bracket, arguments = pair.before.partition("<")
    source = re.sub(rf"\b{base}\(", "other(", SOURCE)
    other = KernelText(f"other{bracket}{arguments}", source, 40, (), pair.threads)
    first, second = (read_kernel(text, QUICKEST) for text in (pair.text(pair.before), other))
    assert changes([first], [second]) == []
    assert "the same code" in line_of(first, second)
