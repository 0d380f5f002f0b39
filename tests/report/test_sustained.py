"""Speedups of variants that each ran alone, beside those that were interleaved."""

import pytest
from found import finding
from synthetic_runs import opening, report_of, request, run_of

from gpulab.core import events as e
from gpulab.core.statuses import Cache, Clock
from gpulab.features.alone.events import AloneRun
from gpulab.features.telemetry.events import POWER_CAP, Telemetry, TelemetryStarted

ON = request(telemetry="on")


def alone(name, time_s, spread=0.001, **changes):
    ends = (
        {} if spread is None else {"low_s": time_s * (1 - spread), "high_s": time_s * (1 + spread)}
    )
    return e.SoloRun(
        variant=name, started=50.0, ended=52.0, steps=100, time_s=time_s, t=52.0, **ends, **changes
    )


def comparison_of(a_s, b_s, *, spread=0.001, ratio=0.5, capped=False, **options):
    later = [alone("a", a_s, spread), alone("b", b_s, spread)]
    if capped:
        readings = [Telemetry(t=50.4, since=50.2, values={"sm": 1.0}, reasons=POWER_CAP)]
        later = [TelemetryStarted(gpu="H100", uuid="GPU-1", t=49.0), *readings, *later]
    report = report_of(run_of({"b": ratio}, later=later, **options), required_speedup=None)
    return report.comparison("b"), report


def test_the_sustained_speedup_is_per_item_with_an_interval_of_both_times():
    comparison, report = comparison_of(1e-3, 0.5e-3)
    sustained = comparison.sustained
    assert (sustained.speedup.value, sustained.headline_reason) == (pytest.approx(2), None)
    assert sustained.speedup.ends == (
        pytest.approx(2 * 0.999 / 1.001),
        pytest.approx(2 * 1.001 / 0.999),
    )
    solo = report.variant("b").solo_run
    assert solo.items_per_s == pytest.approx(2.0 / 0.5e-3)
    assert report.variant("b").items_per_s == pytest.approx(2.0 / report.variant("b").time_s.value)
    assert solo.time_s.ends == (pytest.approx(0.4995e-3), pytest.approx(0.5005e-3))


def test_a_sustained_speedup_that_lies_apart_heads_the_result():
    assert comparison_of(1e-3, 0.56e-3)[0].sustained.headline_reason == finding(
        "differs_alone", "b"
    )
    for seconds, options in (
        (0.51e-3, {}),
        (0.56e-3, {"spread": 0.1}),
        (0.56e-3, {"spread": None}),
    ):
        assert comparison_of(1e-3, seconds, **options)[0].sustained.headline_reason is None
    noisy = comparison_of(1e-3, 0.56e-3)[1]
    assert noisy.comparison("b").verdict == "faster"


def test_without_the_spread_of_a_solo_run_it_has_no_interval():
    sustained = comparison_of(1e-3, 0.56e-3, spread=None)[0].sustained
    assert not sustained.speedup.has_interval
    assert sustained.speedup.value == pytest.approx(1 / 0.56)


def test_at_a_power_cap_it_heads_the_result_where_it_is_another_one():
    capped = comparison_of(1e-3, 0.51e-3, spread=None, capped=True, run_request=ON)[0]
    assert capped.sustained.headline_reason == finding("power_cap_alone", "b")
    assert (
        comparison_of(1e-3, 0.5e-3, capped=True, run_request=ON)[0].sustained.headline_reason
        is None
    )


def test_at_a_power_cap_solo_runs_say_how_much_and_processes_how_sure():
    """Milliseconds of each variant, as the processes time them alone, do not reach the cap."""
    speedups = [1.9, 2.0, 2.1, 2.0, 1.95, 2.05, 2.0, 2.0]
    runs = [
        AloneRun(variant=name, process=process, time_s=1e-3 / by, t=51.0)
        for process, speedup in enumerate(speedups)
        for name, by in (("a", 1.0), ("b", speedup))
    ]
    readings = [Telemetry(t=50.4, since=50.2, values={"sm": 1.0}, reasons=POWER_CAP)]
    started = TelemetryStarted(gpu="H100", uuid="GPU-1", t=49.0)
    later = [started, *readings, *runs, alone("a", 1e-3), alone("b", 0.8e-3)]
    sustained = report_of(run_of({"b": 0.5}, later=later, run_request=ON)).comparison("b").sustained
    speedup = sustained.speedup
    assert (speedup.value, *speedup.ends) == pytest.approx((1.25, 1.1875, 1.3125))
    assert (speedup.n, sustained.headline_reason) == (8, finding("power_cap_alone", "b"))


def test_a_verdict_that_it_contradicts_is_inconclusive_and_reaches_nothing():
    comparison, _ = comparison_of(1e-3, 1.2e-3)
    assert comparison.verdict == "inconclusive"
    assert comparison.speedup.value == pytest.approx(2, rel=1e-3)
    values = {
        "interleaved": comparison.speedup.value,
        "sustained": comparison.sustained.speedup.value,
    }
    assert comparison.reason == finding("sustained_contradicts", "b", **values)
    later = [alone("a", 1e-3), alone("b", 1.2e-3)]
    assert report_of(run_of({"b": 0.5}, later=later), required_speedup=1.5).exit_code == 6
    assert comparison_of(1e-3, 1.2e-3, spread=None)[0].verdict == "faster"
    assert comparison_of(1e-3, 0.8e-3, ratio=1.5)[0].verdict == "inconclusive"


@pytest.mark.parametrize("job", [{"clock": Clock.DEVICE}, {"cache": Cache.COLD}])
def test_a_cold_run_and_the_devices_clock_have_no_solo_run_that_compares(job):
    later = [alone("a", 1e-3), alone("b", 0.8e-3)]
    assert (
        report_of(run_of({"b": 0.5}, run_request=request(**job), later=later))
        .comparison("b")
        .sustained
        is None
    )


def test_of_processes_that_differ_by_as_much_it_says_nothing():
    """Eight processes, 1.9x to 2.1x: one more may well give 1.83x."""
    run = run_of(
        {"b": 0.5}, opened=opening(processes=8, epochs=16), epochs=16, spread=0.0, rounds=2
    )
    for event in run:
        if hasattr(event, "times_s") and hasattr(event, "epoch"):
            event.times_s[:] = [
                time_s * (0.95 + 0.1 * (epoch // 2 * 3 % 8) / 7 if index == 2 else 1.0)
                for time_s, epoch, index in zip(
                    event.times_s, event.epoch, event.variant, strict=True
                )
            ]
    calm = report_of([*run[:-2], alone("a", 1e-3), alone("b", 0.545e-3), *run[-2:]])
    assert calm.comparison("b").sustained.headline_reason is None
    assert not [entry for entry in calm.findings if entry.code == "solo_run_differs"]
    apart = report_of([*run[:-2], alone("a", 1e-3), alone("b", 0.8e-3), *run[-2:]])
    assert apart.comparison("b").sustained.headline_reason == finding("differs_alone", "b")
    assert [entry.variant for entry in apart.findings if entry.code == "solo_run_differs"] == ["b"]
