"""When a device was disturbed, folded reading by reading; and what a variant did while it ran
alone.
"""

import dataclasses
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpulab.core.events import SoloRun
from gpulab.features.telemetry.events import SLOWED, Telemetry, reason_letters, reason_names
from gpulab.features.telemetry.fields import PROCESSES_S, RATE_HZ
from gpulab.features.telemetry.findings import clocks_slowed, gpu_shared
from gpulab.features.telemetry.report import (
    TelemetryState,
    add_windows,
    belongs_to,
    solo_report,
)
from gpulab.report.build import new_state
from gpulab.report.samples import InvalidWindows
from gpulab.stats.series import Window

SLOWED_CODE = clocks_slowed.code
SHARED_CODE = gpu_shared.code
THERMAL, BRAKE, POWER_CAP = 0x40, 0x80, 0x4


@st.composite
def readings(draw):
    """Readings in order; not every one has reasons, and processes are looked for less often."""
    t, looked, result = 0.0, 0.0, []
    for _ in range(draw(st.integers(0, 25))):
        since, t = t, t + draw(st.sampled_from([0.1, 0.2, 0.5]))
        reasons = draw(
            st.sampled_from([None, 0, 0, POWER_CAP, THERMAL, THERMAL, BRAKE, THERMAL | POWER_CAP])
        )
        others = draw(
            st.sampled_from([None, None, [], ["python 1"], ["python 1"], ["python 1", "blender 2"]])
        )
        event = Telemetry(t=t, since=since, values={}, reasons=reasons, others=others)
        if others is not None:
            event, looked = replace(event, others_since=looked), t
        result.append(event)
    return result


def recomputed(events):
    """All windows from all readings at once: each up to the next reading of its kind, merged by
    their cause.
    """
    clocks = [event for event in events if event.reasons is not None]
    windows = [
        Window(
            event.since,
            after.t if after else event.t + 1 / RATE_HZ,
            SLOWED_CODE,
            tuple(reason_names(slowed)),
        )
        for event, after in zip_longest(clocks, clocks[1:])
        if (slowed := event.reasons & SLOWED)
    ]
    looks = [event for event in events if event.others is not None]
    windows += [
        Window(
            event.others_since,
            after.t if after else event.t + PROCESSES_S,
            SHARED_CODE,
            tuple(event.others),
        )
        for event, after in zip_longest(looks, looks[1:])
        if event.others
    ]
    merged = {}
    for window in windows:
        group = merged.setdefault(window.cause, [])
        if group and window.start <= group[-1].end:
            group[-1] = Window(
                group[-1].start, max(group[-1].end, window.end), window.code, window.names
            )
        else:
            group.append(window)
    return [window for group in merged.values() for window in group]


def by_time(windows):
    return sorted(windows, key=lambda window: (window.code, window.names, window.start))


@given(readings())
def test_windows_reading_by_reading_are_those_of_all_readings_at_once(events):
    windows = InvalidWindows()
    for index, event in enumerate(events, 1):
        add_windows(windows, event)
        assert by_time(windows.all()) == by_time(recomputed(events[:index]))


def before(windows, code, until):
    """The windows of a code up to that instant."""
    early = [window for window in windows if window.code == code and window.start < until]
    return by_time(dataclasses.replace(window, end=min(window.end, until)) for window in early)


@given(readings())
def test_nothing_changes_any_more_before_the_instant_that_is_settled(events):
    state, final = new_state(), recomputed(events)
    for event in events:
        state.fold(event)
        windows, history = state.samples.windows.all(), state.part(TelemetryState)
        for code, until in (
            (SLOWED_CODE, history.clocks_final_until),
            (SHARED_CODE, history.processes_final_until),
        ):
            assert before(windows, code, until) == before(final, code, until)


def after(windows, until):
    """The windows that go on after an instant, from then on."""
    late = [window for window in windows if window.end > until]
    return [dataclasses.replace(window, start=max(window.start, until)) for window in late]


@given(readings(), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_dropping_windows_of_the_past_changes_nothing_after_it_nor_the_order_of_causes(
    events, delay
):
    everything, rest = InvalidWindows(), InvalidWindows()
    for event in events:
        add_windows(everything, event)
        add_windows(rest, event)
        until = event.t - delay
        rest.drop(until)
        assert after(rest.all(), until) == after(everything.all(), until)
    rest.drop(1e9)
    assert len(rest.all()) <= 2  # those of the last readings may still grow


SOLO = SoloRun(variant="a", started=10.0, ended=12.0, steps=1000, time_s=2e-3)


def reading(t, **values):
    return Telemetry(t=t, since=t - 0.2, values=values, reasons=0)


def test_only_readings_that_lie_within_a_solo_run_belong_to_it():
    inside = [belongs_to(reading(t), SOLO) for t in (10.2, 10.29, 10.31, 11.0, 12.0, 12.01)]
    assert inside == [False, False, True, True, True, False]  # counters are up to 0.1 s old


def test_means_energy_and_reasons_of_a_solo_run():
    events = [
        reading(10.4 + 0.2 * number, power=300.0 + number, energy=60.0 * number)
        for number in range(8)
    ]
    solo = solo_report(events, SOLO)
    assert (solo.readings, solo.clocks, solo.slowed) == (8, "ok", 0.0)
    assert solo.means == {"power": pytest.approx(303.5)}
    assert solo.energy_j == pytest.approx(300 * 2.0 / 1000)  # 60 J in 0.2 s, over the steps of 2 s


def test_reasons_in_letters_are_those_that_hold_the_clocks_back():
    assert [
        reason_letters(bits) for bits in (None, 0, 0x1, POWER_CAP, THERMAL | 0x20, BRAKE | THERMAL)
    ] == [
        "n/a",
        "ok",
        "ok",
        "P",
        "T",
        "TB",
    ]


def test_what_the_driver_averages_over_a_second_is_left_out_of_the_first_second():
    events = [reading(10.4, busy=0.0, sm=50.0), reading(11.3, busy=100.0, sm=60.0)]
    assert solo_report(events, SOLO).means == {"busy": 100.0, "sm": 55.0}
    assert solo_report(events[:1], SOLO).means == {"sm": 50.0}
