"""What a report shows of a run under way: where it is, and times as far as they are known."""

import pytest
from msgspec.structs import replace
from synthetic_runs import CPU, END, STARTED_T, batches, opening, report_of, request, rows, run_of

from gpulab.core import events as e
from gpulab.core.statuses import Stage

BLOCKS = rows({"b": 0.5})
PER_EPOCH = 15


def live(*events, **options):
    return report_of([*opening(), *events], live=True, **options)


def test_where_a_run_is():
    progress = live(
        e.StageStarted(stage=Stage.BUILD, variant="b", t=0.5), now=STARTED_T + 2.5
    ).progress
    assert (progress.stage, progress.variant, progress.detail) == ("build", "b", None)
    assert (progress.epoch, progress.planned_epochs, progress.rounds, progress.elapsed_s) == (
        0,
        20,
        0,
        2.5,
    )
    detail = live(
        e.StageStarted(stage=Stage.CEILINGS, detail="device memory", t=STARTED_T + 0.5)
    ).progress
    assert (detail.stage, detail.variant, detail.detail, detail.elapsed_s) == (
        "ceilings",
        None,
        "device memory",
        0.5,
    )


@pytest.mark.parametrize(
    ("count", "epoch", "rounds"), [(1, 1, 1), (14, 1, 5), (16, 2, 6), (150, 10, 50)]
)
def test_epochs_are_counted_from_one_and_rounds_with_those_under_way(count, epoch, rounds):
    progress = live(*batches(BLOCKS[:count], 7)).progress
    assert (progress.epoch, progress.rounds) == (epoch, rounds)


def test_after_its_end_a_run_has_no_epoch_under_way():
    measured = [
        *opening(),
        *batches(BLOCKS, 10_000),
        END[0],
        e.StageStarted(stage=Stage.PROFILE, variant="a", t=100.5),
    ]
    assert (
        report_of(measured, live=True).progress.epoch,
        report_of(measured, live=True).progress.rounds,
    ) == (20, 100)
    ended = report_of(run_of({"b": 0.5}), now=1000.0).progress
    # of a run that is over its last event counts, whatever the clock shows
    assert ended.elapsed_s == 101.0 - STARTED_T
    assert ended.awaiting_telemetry is False


def test_a_time_is_the_calibrated_one_then_a_rough_one_then_one_with_its_interval():
    calibrated = e.Calibrated(
        variant="a", steps_per_block=8, step_s=5e-3, empty_block_s=1e-7, t=0.4
    )
    times = [
        live(calibrated, *batches(BLOCKS[:count], 10_000)).variant("a").time_s
        for count in (0, 1, 7 * PER_EPOCH + 1, 8 * PER_EPOCH + 1)
    ]
    assert times[0].value == 5e-3
    assert [time.value for time in times[1:]] == pytest.approx([1e-3] * 3, rel=0.01)
    assert [time.low is not None for time in times] == [False, False, False, True]
    assert live().variant("a").time_s is None


def test_the_epoch_under_way_is_in_no_interval():
    complete = live(*batches(BLOCKS[: 9 * PER_EPOCH], 10_000, complete=9))
    more = live(*batches(BLOCKS[: 9 * PER_EPOCH + 8], 10_000))
    without_trust = [
        [replace(entry, trust=None) for entry in report.comparisons] for report in (more, complete)
    ]
    assert without_trust[0] == without_trust[1]
    assert more.variant("b").time_s == complete.variant("b").time_s
    assert (more.method.rounds, more.progress.rounds) == (45, 48)


def test_a_live_run_has_its_findings_its_device_and_its_log():
    drift = e.WarmedUp(variant="a", times_s=[], drift=0.1, drifting=True, t=0.4)
    report = live(drift, e.Log(lines=["hello"], t=0.5), e.Log(lines=["there"], t=0.6))
    assert [entry.code for entry in report.findings] == ["warm_up_drifts"]
    assert (report.device, report.on_gpu) == (CPU, False)
    assert (report.log.head, report.log.skipped, report.log.tail) == (["hello", "there"], 0, [])
    assert (report.exit_code, report.reason) == (None, None)


def test_a_variant_and_its_comparison_are_found_by_name():
    report = report_of(run_of({"b": 0.5}))
    assert report.variant("b") is report.variants[1]
    assert report.comparison("b") is report.comparisons[0]
    assert report.comparison("a") is None
    for find in (report.variant, report.comparison, report.samples):
        with pytest.raises(KeyError, match="no variant 'x'; the variants: a, b"):
            find("x")


def left(speedups, *, took_s=1.0, waited_s=1.0, **job):
    """Seconds that a run of such processes has left while the next one measures, since so long."""
    processes = len(speedups) + 1
    opened = opening(request(time_s=20.0, **job), processes=processes, epochs=processes)
    began = 0.3
    for place, event in enumerate(opened):
        if isinstance(event, e.Planned):
            opened[place] = replace(event, expected_s=8.0, processes=8)
        if isinstance(event, e.ProcessStarted):
            opened[place] = replace(event, t=began + took_s * event.process)
    ratios = [{"b": 1 / speedup} for speedup in (*speedups, 1.0)]
    blocks = [
        (epoch, number, index, time_s)
        for epoch, ratio in enumerate(ratios)
        for _, number, index, time_s in rows(ratio, epochs=1, rounds=3, seed=epoch)
    ]
    events = [*opened, *batches(blocks, 10_000, complete=len(speedups))]
    now = began + took_s * len(speedups) + waited_s
    return report_of(events, live=True, now=now).progress.remaining_s


def test_the_time_left_is_all_of_it_however_early_the_run_may_be_decided():
    assert left([], brief=True) is None
    assert left([40.0, 40.4, 39.8], brief=True) == pytest.approx(16.0)
    assert left([40.0, 40.4, 39.8, 40.1, 40.0, 40.0], brief=True) == pytest.approx(13.0)
    assert left([1.0, 1.1, 1.2, 1.0], brief=True) == pytest.approx(15.0)
    assert left([40.0, 40.4]) == pytest.approx(5.0)


def test_the_time_left_follows_the_pace_of_the_processes():
    """Where they take three times as long as was planned, so does what is left."""
    steady = [40.0, 40.4, 39.8]
    assert left(steady, took_s=1.0) == pytest.approx(4.0)
    assert left(steady, took_s=3.0) == pytest.approx(14.0)
    assert left(steady, took_s=3.0, waited_s=3.0) == pytest.approx(12.0)
