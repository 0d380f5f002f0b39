"""A sweep: which points may be the best, which one its final shows to be, and what cannot be told
from it.
"""

import pytest
from found import finding
from msgspec.structs import replace
from reports import run_report, variant_report

from gpulab.core.estimate import Estimate
from gpulab.core.limits import NAME_LENGTH
from gpulab.core.statuses import ExitCode, Status, Verdict
from gpulab.features.sweeps.report import MOST_FINALISTS, contenders_of, finalists_of, sweep_of
from gpulab.report.report import Method
from gpulab.stats.comparison import Comparison


def variant(name, median, *, half=0.1, items=1.0, status=Status.OK):
    time = None if median is None else Estimate(value=median, low=median - half, high=median + half)
    return variant_report(name=name, status=status, items=items, time_s=time)


def point(value, *variants, parameter="size"):
    return run_report(scenario="s", params={parameter: value}, variants=list(variants))


def points(*times, name="a", half=0.1):
    """A run for each time, at 1, 2, 3, ..."""
    return [point(number, variant(name, time, half=half)) for number, time in enumerate(times, 1)]


def final(speedups, verdicts=None, processes=8):
    """By contender its speedup over the first with the ends of its interval; None where it has
    none.
    """
    comparisons = [
        Comparison(
            variant=name,
            against="first",
            speedup=ends and Estimate(value=ends[1], low=ends[0], high=ends[2]),
        )
        for name, ends in speedups.items()
    ]
    comparisons = [
        replace(entry, verdict=(verdicts or {}).get(entry.variant, Verdict.SAME))
        for entry in comparisons
    ]
    return run_report(scenario="s", comparisons=comparisons, method=Method(processes=processes))


def test_the_best_value_has_the_least_time_per_item():
    runs = [
        point(1, variant("a", 1.0, items=1.0), variant("b", 1.0, items=1.0)),
        point(2, variant("a", 1.5, items=2.0), variant("b", 3.0, items=2.0)),
        point(4, variant("a", 9.0, items=4.0), variant("b", 8.0, items=4.0)),
    ]
    sweep = sweep_of("size", runs)
    assert (sweep.scenario, sweep.parameter, sweep.best) == ("s", "size", {"a": 2, "b": 1})
    assert (sweep.final, sweep.paired, sweep.contenders) == (None, {"a": False, "b": False}, [])


def test_without_a_final_what_overlaps_the_best_may_be_as_good():
    assert sweep_of("size", points(1.5, 1.2, 1.0, 1.15, 1.21)).best_among == {"a": [3, 4, 2]}
    runs = [
        point(1, variant("a", 2.0, items=2.0)),
        point(2, variant("a", 4.4, items=4.0, half=0.4)),
    ]
    assert sweep_of("size", runs).best_among == {"a": [1, 2]}  # per item: 1.0 to 1.05, and from 1.0


def test_finalists_are_the_best_its_neighbours_and_what_overlaps_it():
    assert finalists_of("size", points(1.5, 1.2, 1.0, 3.0, 1.15)) == {"a": [3, 2, 4, 5]}
    assert finalists_of("size", points(1.0, 5.0, 6.0)) == {"a": [1, 2]}
    assert finalists_of("size", points(6.0, 5.0, 1.0)) == {"a": [3, 2]}


def test_a_time_without_interval_counts_as_its_median():
    rough = variant_report(name="a", status=Status.OK, items=1.0, time_s=Estimate(value=1.05))
    assert sweep_of("size", [point(1, variant("a", 1.0)), point(2, rough)]).best_among == {
        "a": [1, 2]
    }
    assert sweep_of("size", [point(1, rough), point(2, variant("a", 1.2))]).best_among == {"a": [1]}


def test_many_that_overlap_are_cut_to_the_fastest():
    times = [1.0 + 0.001 * number for number in range(30, 0, -1)]
    (finalists,) = finalists_of("size", points(*times)).values()
    assert finalists[0] == 30
    assert sorted(finalists) == list(range(30 - MOST_FINALISTS + 1, 31))


def test_a_variant_that_was_measured_at_one_value_only_is_in_no_final():
    failed = variant("b", None, status=Status.FAILED)
    runs = [point(1, variant("a", 1.0), variant("b", 1.0)), point(2, variant("a", 2.0), failed)]
    assert finalists_of("size", runs) == {"a": [1, 2]}
    assert sweep_of("size", runs).best == {"a": 1}
    assert finalists_of("size", runs[:1]) == {}


def test_runs_without_the_parameter_are_no_points():
    runs = [
        point(1, variant("a", 1.0)),
        point(2, variant("a", 0.5), parameter="other"),
        point(3, variant("a", 2.0)),
    ]
    assert sweep_of("size", runs).best == {"a": 1}


def test_values_keep_their_type():
    runs = [
        point(value, variant("a", time)) for value, time in ((True, 1.0), (2, 0.5), (0.25, 0.55))
    ]
    assert sweep_of("size", runs).best_among == {"a": [2, 0.25]}


def test_texts_name_different_work_of_which_none_is_the_best():
    runs = [
        point(value, variant("a", time)) for value, time in (("matmul", 1.0), ("pointwise", 0.5))
    ]
    assert sweep_of("size", runs).best == {}
    assert finalists_of("size", runs) == {}


@pytest.mark.parametrize(
    ("speedups", "among"),
    [
        ({1: (0.6, 0.7, 0.8), 3: (0.8, 0.85, 0.9)}, [2]),
        ({1: (0.6, 0.7, 0.8), 3: (0.97, 0.99, 1.01)}, [2, 3]),
        ({1: (0.95, 0.98, 1.02), 3: (0.97, 0.99, 1.01)}, [2, 3, 1]),
        # The one with the least median was lucky.
        ({1: (1.2, 1.25, 1.3), 3: (0.8, 0.85, 0.9)}, [1]),
        ({1: (1.2, 1.25, 1.3), 3: (1.22, 1.24, 1.26)}, [1, 3]),
        # Faster by less than the floor: as good.
        ({1: (1.002, 1.004, 1.006), 3: (0.8, 0.85, 0.9)}, [1, 2]),
    ],
)
def test_the_final_decides_which_is_the_best(speedups, among):
    runs = points(1.2, 1.0, 1.15, half=0.01)
    sweep = sweep_of(
        "size", runs, final({f"a size={value}": ends for value, ends in speedups.items()})
    )
    assert (sweep.best, sweep.best_among, sweep.paired) == (
        {"a": among[0]},
        {"a": among},
        {"a": True},
    )
    assert [
        (contender.name, contender.variant, contender.value) for contender in sweep.contenders
    ] == [
        ("a size=2", "a", 2),
        ("a size=1", "a", 1),
        ("a size=3", "a", 3),
    ]


def test_several_comparisons_share_their_confidence():
    """An interval that just excludes 1 does so for one comparison, and not for seven."""
    ends = (0.960, 0.975, 0.988)
    assert sweep_of("size", points(1.0, 1.05), final({"a size=2": ends})).best_among == {"a": [1]}
    runs = points(1.0, *([1.05] * 7))
    among = sweep_of(
        "size", runs, final({f"a size={value}": ends for value in range(2, 9)})
    ).best_among["a"]
    assert set(among) == set(range(1, 9))


@pytest.mark.parametrize("missing", [{}, {"a size=2": None}])
def test_a_final_that_compared_nothing_decides_nothing(missing):
    sweep = sweep_of("size", points(1.0, 1.05), final(missing))
    assert (sweep.best, sweep.paired) == ({"a": 1}, {"a": False})


def test_a_final_that_was_stopped_decides_nothing():
    stopped = replace(final({"a size=2": (0.8, 0.85, 0.9)}), exit_code=ExitCode.INTERRUPTED)
    assert not sweep_of("size", points(1.0, 1.05), stopped).paired["a"]
    later = replace(stopped, reason=finding("stopped_after_measuring"))
    assert sweep_of("size", points(1.0, 1.05), later).paired["a"]


def test_each_variant_has_its_own_best():
    runs = [
        point(value, variant("a", first), variant("b", second))
        for value, first, second in ((1, 1, 2), (2, 3, 1))
    ]
    speedups = {"a size=2": (0.3, 0.33, 0.4), "b size=1": (0.4, 0.5, 0.6)}
    sweep = sweep_of("size", runs, final(speedups))
    assert sweep.best == {"a": 1, "b": 2}


def test_names_of_contenders_are_short_and_their_own():
    finalists = {"v" * 90: ["x" * 4000, "x" * 4001], "b": [1, 1.0]}
    names = [contender.name for contender in contenders_of("n", finalists)]
    assert len(set(names)) == 4
    assert max(map(len, names)) <= NAME_LENGTH
    assert names[2:] == ["b n=1", "b n=1.0"]
