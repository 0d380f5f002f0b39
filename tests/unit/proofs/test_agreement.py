"""What is said of runs that reproduce, from records made up for it."""

from random import Random

import pytest
from agreement import (
    Share,
    alternating,
    expected_alternating,
    false_verdicts,
    over_runs,
    seconds_by_stage,
    single_runs,
    slowdowns,
    summary,
)


def comparison(speedup, half_width=0.01, verdict="same", against="baseline"):
    low, high = speedup - half_width, speedup + half_width
    return {"against": against, "speedup": speedup, "low": low, "high": high, "verdict": verdict}


def refused():
    return {"against": "baseline", "speedup": None, "low": None, "high": None, "verdict": "invalid"}


def record(at=0.0, kind="small_ops", mode="default", halves=(), **comparisons):
    return {
        "kind": kind,
        "mode": mode,
        "at": at,
        "exit_code": 0,
        "seconds": {
            "stages": {"measure": 4.0, "build": 1.0},
            "timed": 2.0,
            "verdict": 5.0,
            "end": 6.0,
        },
        "comparisons": comparisons,
        "processes": {name: [0.1] * 16 for name in comparisons},
        "halves": list(halves),
    }


def test_false_verdicts_are_those_of_variants_that_do_the_same():
    records = [
        record(
            twin=comparison(1.0), control=comparison(1.0), unlike=comparison(1.5, verdict="faster")
        ),
        record(
            twin=comparison(1.03, verdict="faster"), compiled_twin=comparison(0.9, verdict="slower")
        ),
        record(twin=comparison(1.0, verdict="inconclusive")),
    ]
    assert false_verdicts(records) == Share(2, 5)


def test_a_slowdown_is_found_or_not():
    verdicts = ("slower", "slower", "inconclusive", "same")
    assert slowdowns(
        [record(slower=comparison(0.95, verdict=verdict)) for verdict in verdicts]
    ) == Share(2, 4)
    assert slowdowns([record(unlike=comparison(1.0))]) == Share(0, 0)


def test_alternating_runs_hold_each_others_estimate():
    """Each interval is asked for the other's estimate; where there is none, nobody is asked."""
    near = ({"unlike": comparison(1.50)}, {"unlike": comparison(1.505)})
    single = ({"unlike": comparison(1.50, 0.001)}, {"unlike": comparison(1.505, 0.1)})
    without = ({"unlike": refused()}, {"unlike": comparison(1.5)})
    assert alternating([record(halves=halves) for halves in (near, single, without)]) == (
        Share(3, 4),
        1,
    )


def test_single_runs_and_the_median_of_all():
    records = [
        record(at, unlike=comparison(speedup))
        for at, speedup in enumerate((1.50, 1.501, 1.502, 1.6, 1.4))
    ]
    assert single_runs(records, "unlike") == Share(3, 5)
    assert single_runs([record(unlike=refused())], "unlike") == Share(0, 0)


def test_intervals_over_eight_runs():
    """Runs that do not drift are held by every eight; of a steady drift only those that are spread
    hold the middle.
    """
    random = Random(1)
    steady = [record(at, unlike=comparison(1.5 + random.gauss(0, 0.01))) for at in range(40)]
    consecutive, interleaved = over_runs(steady, "unlike")
    assert (consecutive.trials, interleaved.trials) == (33, 5)
    assert consecutive.value > 0.9
    drifting = [record(at, unlike=comparison(1.5 + 0.01 * at)) for at in range(40)]
    consecutive, interleaved = over_runs(drifting, "unlike")
    assert consecutive.value < 0.3
    assert interleaved.value == 1.0
    assert over_runs(drifting[:10], "unlike") == (Share(), Share())


def test_the_order_is_that_of_time_not_of_the_file():
    drifting = [record(at, unlike=comparison(1.5 + 0.01 * at)) for at in range(40)]
    Random(2).shuffle(drifting)
    assert over_runs(drifting, "unlike")[0].value < 0.3


def test_what_independent_processes_would_give():
    assert 0.93 < expected_alternating(8) < 0.995
    assert expected_alternating(4) == 0.0, "four carry no interval"


def test_seconds_are_medians_of_runs_that_have_the_stage():
    records = [record(unlike=comparison(1.0)) for _ in range(3)]
    assert seconds_by_stage(records) == {"measure": 4.0, "build": 1.0}


def test_a_summary_says_what_holds():
    comparisons = {
        "twin": comparison(1.0),
        "control": comparison(1.0),
        "slower": comparison(0.95, verdict="slower"),
    }
    halves = ({"unlike": comparison(1.5)}, {"unlike": comparison(1.5)})
    records = [record(at, unlike=comparison(1.5), **comparisons) for at in range(20)]
    records.append(record(20, mode="long", halves=halves, unlike=comparison(1.5)))
    text, held = summary(records)
    assert held
    assert "| small ops | 20 | 1.500x |" in text
    assert "false verdicts <= 1%: 0/40 0.0%: yes" in text
    assert "5 % slower found >= 95%: 20/20 100.0%: yes" in text
    assert "2/2 100.0%; 0 without an interval; 8 independent processes:" in text
    alone = [dict(speedup=1.5, low=1.5 - 0.02 * held, high=1.5 + 0.02 * held) for held in range(5)]
    runs = [
        record(at, unlike={**comparison(1.5), "sustained": sustained})
        for at, sustained in enumerate(alone)
    ]
    runs.append(
        record(
            9, unlike={**comparison(1.5), "sustained": {"speedup": 2.0, "low": 1.9, "high": 2.1}}
        )
    )
    assert "sustained intervals hold the median of all >= 90%: 5/6 83.3%: NO" in summary(runs)[0]
    text, held = summary([record(at, twin=comparison(1.2, verdict="faster")) for at in range(5)])
    assert not held
    assert "5/5 100.0%: NO" in text


def test_a_summary_of_nothing():
    text, held = summary([])
    assert held
    assert text.count(": n/a") == 2 * 6


@pytest.mark.parametrize("kind", ["compiled", "expensive_builds"])
def test_expensive_kinds_are_judged_apart(kind):
    text, held = summary([record(kind=kind, twin=comparison(1.2, verdict="faster"))])
    five, expensive = text.split("**expensive builds**")
    assert "NO" in expensive
    assert "NO" not in five
    assert not held
