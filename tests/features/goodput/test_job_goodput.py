"""Whole jobs from process start: every second has a cause, and what a variant pays first it has to
earn back.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import run_report, variant_report

from gpulab.core.estimate import Estimate
from gpulab.core.statuses import Status
from gpulab.features.goodput.job import BEFORE_STEPS, from_start
from gpulab.features.goodput.result import GoodputReport

STARTUP = {"interpreter": 0.05, "imports": 3.0, "device": 0.4, "file": 0.05}


def variant(name, step_s=1e-3, useful=0.5, **changes):
    goodput = (
        None
        if useful is None
        else GoodputReport(
            goodput=useful,
            partition={"useful": useful, "other": 1 - useful},
            step_s=step_s,
            reliable=True,
        )
    )
    usual = {"build_s": 0.5, "first_step_s": 0.1 + step_s, "warm_up_s": 0.0, "items": 1.0}
    times = {"time_s": Estimate(value=step_s), "clocks_s": {"wall": step_s}}
    return variant_report(
        name=name, status=Status.OK, goodput=goodput, **{**times, **usual, **changes}
    )


def run(*variants, **changes):
    return run_report(scenario="s", variants=list(variants), **{"startup_s": STARTUP, **changes})


def test_every_second_from_process_start_has_a_cause():
    (job,) = from_start(run(variant("a", warm_up_s=0.4)), 1000).jobs
    assert job.seconds == pytest.approx(
        {**STARTUP, "build": 0.5, "first step": 0.1, "warm-up": 0.4, "useful": 0.5, "other": 0.5}
    )
    assert job.total_s == pytest.approx(5.5)
    assert job.goodput == pytest.approx(0.5 / 5.5)
    assert (job.reliable, job.speedup, job.ahead_after) == (True, None, None)


@pytest.mark.parametrize(
    ("step_s", "steps"), [(1e-3, 60_000), (12.3e-6, 4_900_000), (7.0, 9), (0.5, 120), (90.0, 1)]
)
def test_by_default_the_baseline_takes_a_minute(step_s, steps):
    jobs = from_start(run(variant("a", step_s)))
    assert jobs.steps == jobs.jobs[0].steps == steps


def test_a_variant_that_compiles_first_is_ahead_once_it_has_earned_it_back():
    compiled = variant("b", 0.5e-3, build_s=10.5)
    (_, job) = from_start(run(variant("a"), compiled), 40_000).jobs
    assert job.ahead_after == 20_000
    assert job.speedup == pytest.approx(44.1 / 34.1)
    for steps, faster in ((19_000, False), (21_000, True)):
        assert (from_start(run(variant("a"), compiled), steps).jobs[1].speedup > 1) == faster
    assert from_start(run(variant("a"), variant("b", 2e-3))).jobs[1].ahead_after is None
    assert from_start(run(variant("a"), variant("b", 0.5e-3))).jobs[1].ahead_after == 0


def test_variants_make_as_many_items():
    (_, job) = from_start(run(variant("a"), variant("b", 4e-3, items=8.0)), 8000).jobs
    assert job.steps == 1000
    assert job.seconds["useful"] + job.seconds["other"] == pytest.approx(4.0)


def test_without_a_profile_the_steps_are_one_part_and_no_goodput_is_claimed():
    (job,) = from_start(run(variant("a", useful=None)), 1000).jobs
    assert job.seconds["steps"] == pytest.approx(1.0)
    assert (job.goodput, job.reliable) == (None, None)


def test_what_was_not_measured_has_no_job():
    failed = variant_report(name="a", status=Status.FAILED)
    assert from_start(run(failed, variant("b"))) is None
    assert [job.variant for job in from_start(run(variant("a"), failed)).jobs] == ["a"]
    assert not from_start(run(variant("a"), startup_s={})).start_known


@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1), st.floats(0, 1), st.floats(0, 10)), min_size=1, max_size=4
    ),
    st.integers(1, 10**6),
)
def test_the_causes_sum_to_the_job_and_longer_jobs_come_nearer_to_the_goodput_of_a_step(
    variants, steps
):
    made = [
        variant(f"v{number}", step_s, useful, build_s=build_s)
        for number, (step_s, useful, build_s) in enumerate(variants)
    ]
    short, long = (from_start(run(*made), count) for count in (steps, 10 * steps))
    for job, longer, source in zip(short.jobs, long.jobs, made, strict=True):
        assert sum(job.seconds.values()) == pytest.approx(job.total_s)
        assert job.goodput <= longer.goodput + 1e-12 <= source.goodput.goodput + 1e-9
        assert set(job.seconds) - set(BEFORE_STEPS) == {"useful", "other"}
