"""Samples and readings in any order of arrival: what is dropped is what a straightforward
recomputation drops.
"""

from itertools import groupby
from math import log

import pytest
from found import finding
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic_runs import END, SLOT_S, batches, opening, report_of, request, rows, samples

from gpulab.core import events as e
from gpulab.core.statuses import IntervalUnit
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted
from gpulab.features.telemetry.report import add_windows
from gpulab.report.build import build_report, fold_all, new_state
from gpulab.report.samples import InvalidWindows
from gpulab.stats.comparison import compare
from gpulab.stats.statistics import correlated_interval, median

STARTED = TelemetryStarted(gpu="H100", uuid="GPU-1", t=0.35)
ON = request(telemetry="0")
EPOCHS, ROUNDS, ITEMS = 12, 3, 2.0
THERMAL, OK = 0x40, 0


def reading(t, reasons=OK, others=None, *, since=None, others_since=None):
    since = t - 0.2 if since is None else since
    return Telemetry(
        t=t, since=since, values={}, reasons=reasons, others=others, others_since=others_since
    )


def quiet(until=6.0):
    return [
        reading(0.2 * number, others=[], others_since=0.2 * number - 0.2)
        for number in range(2, int(until / 0.2))
    ]


@st.composite
def disturbed_runs(draw):
    """The events after the opening as they arrive: batches may be late, processes are looked for
    less often.
    """
    blocks = rows({"b": 0.5}, epochs=EPOCHS, rounds=ROUNDS, spread=0.1)
    arrivals, late = [], 0.0
    for event in batches(blocks, draw(st.integers(1, 40))):
        late = max(late, event.t + draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])))
        arrivals.append((late, event))
    t, looked = 0.4, 0.4
    while t < 1.0 + len(blocks) * SLOT_S + 0.5:
        since, t = t, t + draw(st.sampled_from([0.1, 0.2, 0.4]))
        others = draw(st.sampled_from([None, None, [], [], ["python 1"], ["python 2"]]))
        reasons = draw(st.sampled_from([OK, OK, OK, None, THERMAL, 0x80]))
        arrivals.append(
            (
                t,
                reading(
                    t,
                    reasons,
                    others,
                    since=since,
                    others_since=looked if others is not None else None,
                ),
            )
        )
        looked = t if others is not None else looked
    return [event for _, event in sorted(arrivals, key=lambda arrival: arrival[0])]


def blocks_of(events):
    """(epoch, round, name, seconds per item, start, end) of every block of a complete epoch."""
    batches_so_far = [event for event in events if isinstance(event, e.Samples)]
    complete = max((event.complete for event in batches_so_far), default=0)
    if any(isinstance(event, e.RunEnded) for event in events):
        complete = EPOCHS
    return [
        (epoch, number, event.names[index], time_s / ITEMS, end - time_s * steps, end)
        for event in batches_so_far
        for epoch, number, index, time_s, end, steps in zip(
            event.epoch,
            event.round,
            event.variant,
            event.times_s,
            event.ended,
            event.steps,
            strict=True,
        )
        if epoch < complete
    ]


def recomputed(events):
    """(comparisons of the control and of b, dropped blocks by cause), from all events at once."""
    invalid = InvalidWindows()
    for event in events:
        if isinstance(event, Telemetry):
            add_windows(invalid, event)
    windows = invalid.all()

    def touched(block, cause=None):
        return any(
            block[4] < window.end and block[5] > window.start and cause in (None, window.cause)
            for window in windows
        )

    blocks = blocks_of(events)
    times = {block[:3]: block[3] for block in blocks}
    disturbed = {block[:3] for block in blocks if touched(block)}
    comparisons = []
    for pair in (("control", "a"), ("b", "a")) if blocks else ():
        medians, pairs, dropped = [], 0, 0
        for epoch, group in groupby(sorted({key[:2] for key in times}), key=lambda key: key[0]):
            keys = [((epoch, number, pair[0]), (epoch, number, pair[1])) for _, number in group]
            valid = [
                log(times[after] / times[before])
                for after, before in keys
                if not {after, before} & disturbed
            ]
            medians += [median(valid)] if valid else []
            pairs, dropped = pairs + len(valid), dropped + len(keys) - len(valid)
        comparisons.append(
            compare(
                pair,
                correlated_interval(medians),
                pairs=pairs,
                units=len(medians),
                unit=IntervalUnit.EPOCH_MEDIANS,
                dropped=dropped,
            )
        )
    lost = {
        cause: sum(touched(block, cause) for block in blocks)
        for cause in {window.cause for window in windows}
    }
    return comparisons, {cause: count for cause, count in lost.items() if count}


def shown(report):
    """The same of a report."""
    lost = {}
    for disturbance in report.findings:
        if disturbance.code in ("clocks_slowed", "gpu_shared"):
            names = disturbance.values.get("reasons") or disturbance.values["processes"]
            lost[disturbance.code, tuple(names)] = disturbance.values["dropped"]
    return (
        report.control,
        [replace(comparison, trust=None) for comparison in report.comparisons],
        lost,
    )


def check(report, events):
    comparisons, lost = recomputed(events)
    control, others, dropped = shown(report)
    assert dropped == lost
    if not comparisons:
        assert (control, others) == (None, [])
        return
    assert control.speedup == comparisons[0].speedup
    assert control.verdict == comparisons[0].verdict
    if control.verdict not in ("faster", "slower"):
        assert others == comparisons[1:]


@settings(max_examples=30)
@given(disturbed_runs())
def test_dropped_pairs_and_blocks_are_those_of_a_recomputation(arriving):
    events = [*opening(ON), STARTED, *arriving, *END]
    check(report_of(events), events)


@settings(max_examples=6)
@given(disturbed_runs())
def test_while_a_run_goes_on_too(arriving):
    state, events = new_state(), []
    for event in [*opening(ON), STARTED, *arriving]:
        state.fold(event)
        events.append(event)
        check(build_report(state, live=True), events)


def merged(*streams):
    return sorted((event for stream in streams for event in stream), key=lambda event: event.t)


@pytest.mark.parametrize("size", [1, 7, 45])
def test_windows_that_touch_nothing_give_the_intervals_of_a_run_without_telemetry(size):
    """And they do whether epochs are settled by then, by readings that followed, or not."""
    timed = samples({"b": 0.7}, size)
    disturbed = [*quiet(), reading(9.0, THERMAL), reading(9.2)]
    settled = fold_all([*opening(ON), STARTED, *merged(timed, disturbed)])
    unsettled = fold_all([*opening(ON), STARTED, *timed])
    plain = fold_all([*opening(), *timed])
    assert (
        len(settled.samples.unsettled),
        len(unsettled.samples.unsettled),
        len(plain.samples.unsettled),
    ) == (
        0,
        19,
        0,
    )
    for live in (True, False):
        expected = report_of([*opening(), *timed], live=live)
        for state in (settled, unsettled):
            report = build_report(state, live=live)
            assert (report.comparisons, report.control) == (expected.comparisons, expected.control)
            assert [variant.time_s for variant in report.variants] == [
                variant.time_s for variant in expected.variants
            ]
            assert report.method == expected.method


def test_each_cause_counts_the_blocks_that_it_touches():
    """From 1.0 s on there is a block in each 10 ms; a reading of a slowdown covers the time since
    the one before.
    """
    readings = [
        reading(1.5, THERMAL, others=["python 1"], since=1.3, others_since=1.0),
        reading(1.7, OK, others=[], since=1.5, others_since=1.5),
    ]
    report = report_of([*opening(ON), STARTED, *merged(samples({"b": 0.5}), readings), *END])
    lost = {entry.code: entry.values for entry in report.findings}
    assert lost["clocks_slowed"] == {
        "dropped": 40,
        "blocks": 300,
        "reasons": ["thermal slowdown by the hardware"],
    }
    assert lost["gpu_shared"] == {"dropped": 70, "blocks": 300, "processes": ["python 1"]}
    (comparison,) = report.comparisons
    assert (comparison.pairs, comparison.dropped, comparison.verdict) == (100 - 24, 24, "invalid")
    assert comparison.reason == finding("pairs_dropped", dropped=24, pairs=100)
    assert report.exit_code == 7


def test_up_to_a_fifth_of_the_pairs_may_be_dropped():
    readings = [reading(1.5, THERMAL, since=1.3), reading(1.7, OK, since=1.5)]
    report = report_of([*opening(ON), STARTED, *merged(samples({"b": 0.5}), readings), *END])
    assert (report.exit_code, report.comparisons[0].verdict, report.comparisons[0].dropped) == (
        0,
        "faster",
        14,
    )
    assert report.variant("a").time_s.low is not None


def test_a_gpu_that_is_slowed_down_all_the_time_leaves_nothing_to_believe():
    readings = [reading(0.2 * number, THERMAL) for number in range(2, 40)]
    report = report_of([*opening(ON), STARTED, *merged(samples({"b": 0.5}), readings), *END])
    (comparison,) = report.comparisons
    assert (comparison.pairs, comparison.dropped, comparison.verdict) == (0, 100, "invalid")
    assert report.control.verdict == "invalid"
    assert all(variant.time_s is None for variant in report.variants)
