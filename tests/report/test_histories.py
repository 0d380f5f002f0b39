"""What the report shows of readings and of lines: the newest, the largest, the first and the
last.
"""

from unittest.mock import patch

import pytest
from found import finding
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import END, opening, report_of, request, run_of, samples

from gpulab.core import events as e
from gpulab.core.statuses import Cache, Stage
from gpulab.features.telemetry.events import (
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
)
from gpulab.report import state as log_history
from gpulab.report.state import LogState

POWER_CAP, THERMAL = 0x4, 0x40
ON = request(telemetry="0")
STARTED = TelemetryStarted(
    gpu="H100", uuid="GPU-1", limits={"power": 700.0}, health={"ecc": 0.0}, t=0.35
)


def reading(t, *, reasons=None, **values):
    return Telemetry(t=t, since=t - 0.2, values=values, reasons=reasons)


def telemetry_of(*events, started=STARTED, **options):
    return report_of([*opening(ON), started, *events], live=True, **options).telemetry


def test_a_run_whose_driver_has_not_answered_has_no_telemetry_yet():
    waiting = report_of(opening(ON), live=True)
    assert (waiting.telemetry, waiting.progress.awaiting_telemetry) == (None, True)
    assert report_of([*opening(ON), STARTED], live=True).progress.awaiting_telemetry is False
    assert report_of(opening(), live=True).progress.awaiting_telemetry is False
    assert report_of([*opening(ON), *END]).progress.awaiting_telemetry is False


def test_values_of_the_last_readings_and_the_largest_of_all():
    telemetry = telemetry_of(
        reading(1.0, power=300.0, sm=10.0), reading(1.2, power=500.0), reading(1.4, power=400.0)
    )
    assert (telemetry.gpu, telemetry.uuid, telemetry.readings) == ("H100", "GPU-1", 3)
    assert telemetry.last == {"power": 400.0, "sm": 10.0}
    assert telemetry.peaks == {"power": 500.0, "sm": 10.0}
    assert (telemetry.limits, telemetry.health) == ({"power": 700.0}, {"ecc": 0.0})


def test_a_field_that_the_last_ten_readings_did_not_have_has_no_last_value():
    readings = [reading(1.0 + 0.2 * number, power=300.0) for number in range(9)]
    early = reading(0.8, sm=10.0, power=100.0)
    assert telemetry_of(early, *readings).last == {"power": 300.0, "sm": 10.0}
    assert telemetry_of(early, *readings, reading(3.0, power=300.0)).last == {"power": 300.0}
    lost = TelemetryLost(reason=finding("gpu_lost"), t=3.1)
    assert telemetry_of(early, *readings, reading(3.0, rss=1.0), lost).last == {
        "power": 300.0,
        "sm": 10.0,
        "rss": 1.0,
    }


def test_negative_and_zero_values_have_peaks_too():
    assert telemetry_of(reading(1.0, temperature=-5.0, sm=0.0)).peaks == {
        "temperature": -5.0,
        "sm": 0.0,
    }


@pytest.mark.parametrize(("now", "stale"), [(1.5, False), (1.7, True)])
def test_a_reading_is_stale_after_three_that_did_not_come(now, stale):
    telemetry = telemetry_of(reading(1.0, power=300.0), now=now)
    assert (telemetry.age_s, telemetry.stale) == (pytest.approx(now - 1.0), stale)


def test_without_a_reading_the_age_is_that_of_the_start():
    assert telemetry_of(now=1.35).age_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    "last",
    [TelemetryEnded(t=1.1), TelemetryLost(reason=finding("gpu_lost"), t=1.1), END[1]],
    ids=["telemetry ended", "telemetry lost", "run ended"],
)
def test_telemetry_that_is_over_has_no_age_and_is_not_stale(last):
    telemetry = telemetry_of(reading(1.0, power=300.0), last, now=50.0)
    assert (telemetry.age_s, telemetry.stale) == (None, False)


def test_clocks_are_those_of_the_last_reading_and_a_slowdown_is_remembered():
    assert telemetry_of(reading(1.0)).clocks == "n/a"
    slowed = telemetry_of(
        reading(1.0, reasons=THERMAL | POWER_CAP), reading(1.2, reasons=0), reading(1.4)
    )
    assert (slowed.clocks, slowed.slowed) == ("ok", True)
    capped = telemetry_of(reading(1.0, reasons=POWER_CAP))
    assert (capped.clocks, capped.slowed) == ("P", False)


def test_fields_that_turn_out_unsupported_replace_those_of_the_start():
    started = TelemetryStarted(
        gpu="H100", uuid="GPU-1", unsupported={"sm": "not_supported"}, t=0.35
    )
    assert telemetry_of(started=started).unsupported == {"sm": "not_supported"}
    later = Telemetry(
        t=1.0,
        since=0.8,
        values={},
        unsupported={"sm": "not_supported", "processes": "not_permitted"},
    )
    assert telemetry_of(later, reading(1.2), started=started).unsupported == later.unsupported


READING_TIMES = st.lists(
    st.tuples(st.floats(0.5, 6), st.sampled_from([None, 0, POWER_CAP])), max_size=25
)


@given(READING_TIMES, st.integers(1, 100))
def test_power_caps_are_counted_in_the_readings_of_the_rounds(times, size):
    readings = [
        reading(t, reasons=reasons) for t, reasons in sorted(times, key=lambda pair: pair[0])
    ]
    timed = samples({"b": 0.5}, size)
    events = sorted([*timed, *readings], key=lambda event: event.t)
    report = report_of([*opening(ON), STARTED, *events, *END])
    start, end = timed[0].ended[0] - timed[0].times_s[0] * timed[0].steps[0], timed[-1].ended[-1]
    within = [event for event in readings if event.reasons is not None and start <= event.t <= end]
    capped = sum(event.reasons == POWER_CAP for event in within)
    expected = [finding("power_capped", capped=capped, readings=len(within))] if capped else []
    assert [entry for entry in report.findings if entry.code == "power_capped"] == expected


def test_readings_of_a_solo_run_count_whether_they_come_before_its_event_or_after():
    solo = e.SoloRun(variant="a", started=3.0, ended=5.0, steps=1000, time_s=2e-3, t=5.0)
    readings = [reading(3.15 + 0.2 * number, power=300.0, reasons=THERMAL) for number in range(12)]
    stage = e.StageStarted(stage=Stage.SOLO_RUN, variant="a", t=2.9)
    whole = report_of([*run_of({}, run_request=ON, end=[STARTED]), stage, *readings, solo, *END])
    late = report_of(
        [
            *run_of({}, run_request=ON, end=[STARTED]),
            stage,
            *readings[:5],
            solo,
            *readings[5:],
            *END,
        ]
    )
    assert whole.variant("a").solo_run == late.variant("a").solo_run
    run = whole.variant("a").solo_run
    assert (run.readings, run.means, run.clocks, run.seconds) == (9, {"power": 300.0}, "T", 2.0)
    assert whole.variant("b").solo_run is None


@pytest.mark.parametrize("cache", [Cache.HOT, Cache.COLD])
def test_a_solo_run_has_its_energy_per_item_and_rates_of_declared_work(cache):
    solo = e.SoloRun(variant="a", started=3.0, ended=5.0, steps=1000, time_s=2e-3, t=5.0)
    readings = [reading(3.35 + 0.2 * number, energy=5e4 + 60.0 * number) for number in range(8)]
    opened = [
        *opening(request(telemetry="0", cache=cache), bytes=4000, flops=8000, items=2.0),
        STARTED,
    ]
    report = report_of(run_of({}, opened=opened, later=[*readings, solo]))
    assert report.telemetry.peaks["energy"] == pytest.approx(420)  # the driver counts for ever
    run = report.variant("a").solo_run
    assert (run.time_s.value, run.bytes_per_s, run.flops_per_s) == (2e-3, 2e6, 4e6)
    # 300 W for 2 s in 1000 steps of 2 items; flushing the caches costs most of the energy of a cold
    # one.
    assert run.energy_j == (None if cache == Cache.COLD else pytest.approx(0.3))


LINES = st.lists(st.lists(st.text(max_size=3), max_size=7), max_size=12)


@given(LINES, st.integers(1, 6))
def test_the_first_and_the_last_lines_and_how_many_were_between(chunks, most):
    lines = [line for chunk in chunks for line in chunk]
    with patch.object(log_history, "KEPT_LINES", most):
        history = LogState()
        for chunk in chunks:
            history.add(e.Log(lines=chunk))
    assert history.head == lines[:most]
    assert list(history.tail) == lines[most:][-most:]
    assert history.skipped == len(lines) - len(history.head) - len(history.tail)
    assert history.count == len(lines)


def test_lines_that_the_session_left_out_are_counted():
    first = [f"line {number}" for number in range(log_history.KEPT_LINES)]
    logs = [e.Log(lines=first, t=0.5), e.Log(lines=["last"], skipped=40, t=0.6)]
    log = report_of([*opening(), *logs], live=True).log
    assert (log.head, log.skipped, log.tail) == (first, 40, ["last"])
