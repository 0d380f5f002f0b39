"""However long a run is, its state holds a bounded number of readings, lines and blocks: counted,
object by object.
"""

import gc
from collections import Counter
from types import FunctionType, ModuleType

import pytest
from synthetic_runs import batches, opening, report_of, request, samples

from gpulab.core import events as e
from gpulab.core.statuses import Stage
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted
from gpulab.report.build import build_report, fold_all
from gpulab.report.state import KEPT_LINES
from gpulab.stats.series import Epoch, Window

READINGS, LINES = 35_000, 8_000
STARTED = TelemetryStarted(gpu="H100", uuid="GPU-1", t=0.35)


def objects(root):
    """Everything that can be reached from an object, once."""
    pending, reached = [root], {id(root): root}
    while pending:
        for item in gc.get_referents(pending.pop()):
            if id(item) not in reached and not isinstance(item, (type, ModuleType, FunctionType)):
                reached[id(item)] = item
                pending.append(item)
    return list(reached.values())


def count(root, kind):
    return sum(isinstance(item, kind) for item in objects(root))


def readings(number, start=0.4, *, first=0):
    """Five a second, every fiftieth of a slowdown: what a throttled GPU shows in hours. `first`:
    the first's number.
    """
    for index in range(first, first + number):
        t = start + 0.2 * (index - first)
        yield Telemetry(
            t=t,
            since=t - 0.2,
            values={"power": 300.0 + index % 7, "sm": 50.0},
            reasons=0x40 if index % 50 == 0 else 0x4,
            others=[] if index % 10 == 0 else None,
            others_since=t - 2.0,
        )


@pytest.mark.slow
def test_readings_of_hours_leave_a_bounded_number_in_the_state():
    short = fold_all([*opening(request(telemetry="0")), STARTED, *readings(READINGS // 5)])
    long = fold_all([*opening(request(telemetry="0")), STARTED, *readings(READINGS)])
    assert count(long, Telemetry) == count(short, Telemetry) < READINGS // 5
    report = build_report(long, live=True)
    assert report.telemetry.readings == READINGS
    assert report.telemetry.peaks == {"power": 306.0, "sm": 50.0}


def test_readings_after_each_stage_are_all_that_a_solo_run_can_ask_for():
    started = e.StageStarted(stage=Stage.SOLO_RUN, variant="a", t=1.0)
    stages = [
        event
        for number in range(20)
        for event in (started, *readings(100, start=0.4 + 20.0 * number))
    ]
    assert count(fold_all([*opening(request(telemetry="0")), STARTED, *stages]), Telemetry) <= 200


def test_lines_of_a_talkative_scenario_leave_its_first_and_last():
    lines = [f"line {number}" for number in range(LINES)]
    chunks = [e.Log(lines=lines[first : first + 37], t=1.0) for first in range(0, LINES, 37)]
    state = fold_all([*opening(), *chunks])
    held = [
        item for item in objects(state.log) if isinstance(item, str) and item.startswith("line ")
    ]
    assert len(held) == 2 * KEPT_LINES
    log = build_report(state, live=True).log
    assert (log.head, log.tail) == (lines[:KEPT_LINES], lines[-KEPT_LINES:])
    assert log.skipped == LINES - 2 * KEPT_LINES


def test_epochs_are_reduced_to_their_medians_without_telemetry():
    few = fold_all([*opening(), *samples({"b": 0.5}, 15, epochs=20)])
    many = fold_all([*opening(), *samples({"b": 0.5}, 15, epochs=200)])
    assert (count(few, Epoch), count(many, Epoch)) == (0, 0)
    assert many.samples.epochs == 199
    # Of the epoch under way every block is known; of the others a median of each of three times and
    # two pairs.
    assert count(many.samples, float) - count(few.samples, float) <= 5 * 180
    assert (
        report_of([*opening(), *samples({"b": 0.5}, 15, epochs=200)]).comparisons[0].pairs == 1000
    )


def test_epochs_are_reduced_to_their_medians_once_readings_have_passed_them():
    blocks = samples({"b": 0.5}, 15, epochs=200)
    together = sorted([*blocks, *readings(300, start=0.6)], key=lambda event: event.t)
    state, most = fold_all([*opening(request(telemetry="0")), STARTED]), 0
    for event in together:
        state.fold(event)
        most = max(most, len(state.samples.unsettled))
    # An epoch takes 0.15 s here. Other processes are looked for every two seconds, each time for
    # the two before.
    assert most <= 4 / 0.15 + 1


LONG_S = 1200.0


def epoch_a_second():
    """Events of a long measurement: an epoch of two rounds a second, and five readings."""
    for second in range(int(LONG_S)):
        start = 1.0 + second
        yield from readings(5, start=start, first=5 * second)
        blocks = [(second, number, index, 1e-3) for number in range(2) for index in range(3)]
        (batch,) = batches(blocks, len(blocks), start=start, complete=second + 1)
        yield batch


def test_slowdowns_leave_the_windows_that_can_still_touch_a_block(monkeypatch):
    """Epochs are not compared with those of the past: as often in the last quarter as in the
    first.
    """
    comparisons = Counter()
    overlapping = Epoch.overlapping

    def counted(epoch, windows):
        comparisons[int(epoch.start // (LONG_S / 4))] += len(windows)
        return overlapping(epoch, windows)

    monkeypatch.setattr(Epoch, "overlapping", counted)
    state, most = fold_all([*opening(request(telemetry="0")), STARTED]), 0
    for event in epoch_a_second():
        state.fold(event)
        most = max(most, len(state.samples.windows.all()))
    assert 1 <= most <= 2
    assert sum(state.samples.dropped_blocks.values()) >= LONG_S / 10
    assert count(state, Window) <= 2
    assert 0 < comparisons[3] <= 1.1 * comparisons[0]


@pytest.mark.parametrize("arriving", [[], [STARTED], [STARTED, *readings(50)]])
def test_epochs_wait_a_minute_for_readings_that_stopped_or_never_began(arriving):
    """An epoch takes 0.15 s; the driver hangs, and nothing says that telemetry is over."""
    state, most = fold_all([*opening(request(telemetry="0")), *arriving]), 0
    for event in samples({"b": 0.5}, 15, epochs=1000):
        state.fold(event)
        most = max(most, len(state.samples.unsettled))
    assert 50 / 0.15 < most <= 60 / 0.15 + 2
    assert build_report(state, live=True).comparisons[0].pairs == 999 * 5


def test_a_window_of_a_reading_that_comes_too_late_applies_only_to_what_waited_for_it():
    """The slowdown covers all of the 150 s of blocks; at its reading those of the last 60 s were
    not settled.
    """
    blocks = samples({"b": 0.5}, 15, epochs=1000)
    late = Telemetry(t=151.0, since=0.5, values={}, reasons=0x40, others=[], others_since=0.5)
    state = fold_all([*opening(request(telemetry="0")), STARTED, *blocks, late])
    report = build_report(state)
    (comparison,) = report.comparisons
    assert comparison.dropped + comparison.pairs == 1000 * 5
    assert comparison.dropped == pytest.approx(60 / 0.15 * 5, abs=15)
