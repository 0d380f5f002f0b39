"""Kernels of a run in its report: as the last build made them, and against those of the variant
that the run names.
"""

import json

import pytest
from synthetic_runs import INFOS, opening, report_of, request, run_of

from gpulab.core.jobs import VariantInfo
from gpulab.core.payloads import KernelCode
from gpulab.core.wire import decode, encode
from gpulab.features.kernels.events import KernelsCompiled

FOUR = (
    *INFOS,
    VariantInfo(name="c", against="a"),
    VariantInfo(name="d", against="b"),
    VariantInfo(name="e"),
)


def compiled(variant, *registers):
    """`registers` of each of its kernels."""
    kernels = [
        KernelCode(name=f"k{number}", arch="sm_90", registers=each)
        for number, each in enumerate(registers)
    ]
    return KernelsCompiled(variant=variant, kernels=kernels, t=0.25)


def differences(*events, run_request=None, **job):
    """By variant (against, registers before, after) of a run with these events."""
    report = report_of([*opening(run_request or request(*FOUR, **job)), *events])
    found = {variant.name: variant.kernel_difference for variant in report.variants}
    return {
        name: (each.against, *((change.before, change.after) for change in each.changes))
        for name, each in found.items()
        if each
    }


def test_each_variant_has_its_kernels_and_what_they_differ_in():
    report = report_of(run_of({}, later=[compiled("a", 10), compiled("b", 20, 30)]))
    assert [[kernel.registers for kernel in variant.kernels] for variant in report.variants] == [
        [10],
        [20, 30],
    ]
    first, second = report.variants
    assert first.kernel_difference is None
    assert second.kernel_difference.against == "a"
    assert [(change.what, change.after) for change in second.kernel_difference.changes] == [
        ("kernels", 2),
        ("registers", 30),
    ]


ALL = [compiled(name, registers) for name, registers in zip("abcde", (1, 2, 3, 4, 5), strict=True)]


def test_a_variant_is_set_against_the_declared_one_and_one_for_scale_against_that_above():
    assert differences(*ALL) == {
        "b": ("a", (1, 2)),
        "c": ("a", (1, 3)),
        "d": ("b", (2, 4)),
        "e": ("d", (4, 5)),
    }


def test_on_a_ladder_it_is_the_rung_below_unless_another_than_the_first_is_declared():
    infos = (*FOUR, VariantInfo(name="f", against="a"))
    found = differences(*ALL, compiled("f", 6), run_request=request(*infos, ladder=True))
    assert found == {
        "b": ("a", (1, 2)),
        "c": ("b", (2, 3)),
        "d": ("b", (2, 4)),
        "e": ("d", (4, 5)),
        "f": ("e", (5, 6)),
    }


@pytest.mark.parametrize("ladder", [False, True])
def test_where_that_has_no_kernels_it_is_the_next_above_that_has(ladder):
    assert differences(*ALL[1:2], *ALL[3:], ladder=ladder) == {
        "d": ("b", (2, 4)),
        "e": ("d", (4, 5)),
    }
    assert differences(ALL[0], ALL[3], ladder=ladder) == {"d": ("a", (1, 4))}
    assert differences(ALL[3], ladder=ladder) == {}


def test_the_same_kernels_differ_in_nothing():
    assert differences(compiled("a", 7), compiled("b", 7)) == {"b": ("a",)}


@pytest.mark.parametrize(
    "figure",
    [
        {"registers": -1},
        {"bank_conflicts": 0},
        {"threads": 0},
        {"name": "k" * 5000},
        {"instructions": {"all": -1}},
    ],
)
def test_what_no_compiler_says_is_no_event(figure):
    line = encode(compiled("a", 10)).rstrip(b"\n")
    document = json.loads(line)
    assert decode(line).kernels
    document["kernels"][0] |= figure
    with pytest.raises(ValueError, match="a broken KernelsCompiled"):
        decode(json.dumps(document).encode())
