"""Findings that weaken a result: of the device, of the measurement, and of declared work."""

import pytest
from devices import H200
from found import finding
from msgspec.structs import replace
from synthetic_runs import END, INFOS, opening, report_of, request, run_of, samples

from gpulab.core import events as e
from gpulab.core.jobs import VariantInfo
from gpulab.core.payloads import LINKS
from gpulab.core.statuses import Cache, CeilingChoice, Clock
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured
from gpulab.features.telemetry.events import Telemetry, TelemetryLost, TelemetryStarted

ON = request(telemetry="0")
GPU = {"gpu": "H100", "uuid": "GPU-1"}


def findings(report, code):
    return [entry for entry in report.findings if entry.code == code]


def codes(report):
    return [entry.code for entry in report.findings]


def test_a_run_on_a_quiet_machine_has_no_finding():
    assert codes(report_of(run_of({"b": 0.5}))) == []


def test_what_was_wrong_with_the_run_file_comes_first_then_what_the_worker_noticed():
    noticed = e.FindingMade(finding=finding("ran_one_at_a_time"), t=0.3)
    garbled = finding("garbled_lines", lines=["7"])
    report = report_of([*opening(), noticed, *samples({}), *END], findings=[garbled])
    assert report.findings == [garbled, noticed.finding]


def test_errors_of_the_device_are_findings_once_each():
    problems = [finding("pcie_narrow", width=8, full=16), finding("ecc_errors", count=2)]
    started = TelemetryStarted(**GPU, problems=problems[:1], t=0.35)
    readings = [
        Telemetry(t=1.0, since=0.8, values={}, problems=problems),
        Telemetry(t=1.2, since=1.0, values={}),
    ]
    again = Telemetry(t=1.4, since=1.2, values={}, problems=[finding("ecc_errors", count=3)])
    report = report_of([*opening(ON), started, *readings, again, *samples({}), *END])
    assert report.findings == [*problems, finding("ecc_errors", count=3)]


def test_telemetry_that_ended_early_says_why():
    lost = TelemetryLost(reason=finding("driver_error", message="gone"), t=1.0)
    report = report_of([*opening(ON), TelemetryStarted(**GPU, t=0.35), lost, *samples({}), *END])
    assert report.findings == [
        finding("telemetry_ended_early", cause="driver_error", message="gone")
    ]
    assert report.telemetry.lost == lost.reason


def test_a_gpu_that_hides_its_clocks_or_its_processes_was_not_checked():
    unsupported = {"reasons": "not_supported", "processes": "not_permitted", "sm": "not_supported"}
    started = TelemetryStarted(**GPU, unsupported=unsupported, t=0.35)
    report = report_of([*opening(ON), started, *samples({}), *END])
    assert report.findings == [
        finding("clocks_not_checked", cause="not_supported"),
        finding("processes_not_checked", cause="not_permitted"),
    ]
    host = TelemetryStarted(no_gpu_reason=finding("run_on_cpu"), unsupported=unsupported, t=0.35)
    assert codes(report_of([*opening(ON), host, *samples({}), *END])) == []


def test_a_warm_up_that_still_drifts():
    def warmed(name, drifting):
        return e.WarmedUp(variant=name, times_s=[1.0], drift=0.04, drifting=drifting, t=0.3)

    report = report_of([*opening(), warmed("a", False), warmed("b", True), *samples({}), *END])
    assert report.findings == [finding("warm_up_drifts", "b", drift=0.04)]
    assert [variant.drifting for variant in report.variants] == [False, True]


def busy(cpu_share):
    timed = samples({})
    for event in timed:
        event.cpu_s[:] = [time_s * cpu_share for time_s in event.times_s]
    return timed


def test_a_variant_that_was_off_the_cpu_for_more_than_a_tenth():
    report = report_of([*opening(), *busy(0.8), *END])
    assert [(entry.variant, entry.values) for entry in findings(report, "off_the_cpu")] == [
        ("a", {"share": pytest.approx(0.2)}),
        ("b", {"share": pytest.approx(0.2)}),
    ]
    assert findings(report_of([*opening(), *busy(0.95), *END]), "off_the_cpu") == []
    on_gpu = opening(request(device="cuda"), device=H200)
    # the host waits there
    assert findings(report_of([*on_gpu, *busy(0.1), *END]), "off_the_cpu") == []


def checked(name, tolerance):
    return e.Checked(variant=name, ok=True, error=0.0, tolerance=tolerance, t=0.3)


def test_a_variant_that_computes_in_lower_precision():
    report = report_of([*opening(), checked("a", 1e-4), checked("b", 2e-2), *samples({}), *END])
    assert report.findings == [finding("lower_precision", "b", allowed=2e-2, baseline=1e-4)]
    for tolerance in (1e-4, 1e-10, 0.0, None):
        assert (
            codes(
                report_of(
                    [*opening(), checked("a", 1e-4), checked("b", tolerance), *samples({}), *END]
                )
            )
            == []
        )


def test_outputs_that_nobody_checked():
    infos = (*INFOS, VariantInfo(name="c", against="a", unchecked="random numbers"))
    nothing = e.Unchecked(variant="b", reason=finding("returns_nothing"), t=0.3)
    report = report_of(
        run_of({}, opened=[*opening(request(*infos)), nothing], names=("a", "control", "b", "c"))
    )
    assert report.findings == [
        finding("returns_nothing", "b"),
        finding("declared_unchecked", "c", reason="random numbers"),
    ]


@pytest.mark.parametrize(
    ("time_s", "change"),
    [(1.02e-3, None), (1.1e-3, 0.1), (0.9e-3, -0.1)],
    ids=["as fast", "longer", "shorter"],
)
def test_a_solo_run_that_differs_from_the_interleaved_one(time_s, change):
    solo = e.SoloRun(variant="a", started=5.0, ended=7.0, steps=10, time_s=time_s, t=7.0)
    report = report_of(run_of({}, later=[solo], spread=0.0))
    expected = (
        [finding("solo_run_differs", "a", change=pytest.approx(change), seconds=2.0)]
        if change
        else []
    )
    assert report.findings == expected


def test_a_cold_solo_run_is_mostly_flushing_and_on_the_device_clock_the_wall_is_what_counts():
    solo = e.SoloRun(variant="a", started=5.0, ended=7.0, steps=10, time_s=9.0, t=7.0)
    assert codes(report_of(run_of({}, run_request=request(cache=Cache.COLD), later=[solo]))) == []
    device = request(clock=Clock.DEVICE)
    assert codes(report_of(run_of({}, run_request=device, later=[solo]))) == []
    wall = e.OtherClock(variant="a", clock=Clock.WALL, times_s=[4.0, *[5.0] * 7, 6.0], t=7.0)
    report = report_of(run_of({}, run_request=device, later=[wall, solo]))
    assert report.findings == [
        finding("solo_run_differs", "a", change=pytest.approx(0.8), seconds=2.0)
    ]
    assert set(report.variant("a").clocks_s) == {"device", "wall"}


@pytest.mark.parametrize(
    ("time_s", "ends", "differs"),
    [
        (1.06e-3, (1.05e-3, 1.07e-3), True),
        (1.06e-3, (0.99e-3, 1.2e-3), False),  # its own blocks differ by as much
        (1.025e-3, (1.02e-3, 1.03e-3), False),  # too little to matter
    ],
)
def test_a_solo_run_differs_beyond_the_intervals_of_both_times_only(time_s, ends, differs):
    low_s, high_s = ends
    solo = e.SoloRun(
        variant="a",
        started=5.0,
        ended=7.0,
        steps=1000,
        time_s=time_s,
        low_s=low_s,
        high_s=high_s,
        t=7.0,
    )
    assert codes(report_of(run_of({}, later=[solo]))) == ["solo_run_differs"] * differs
    noisy = report_of(run_of({}, later=[solo], spread=0.2))
    assert codes(noisy) == []


def ceilings(*measured):
    return CeilingsMeasured(ceilings=measured, at="", t=0.3)


def ceiling(roof, kind, best, median=None):
    return Ceiling(roof=roof, kind=kind, unit="", best=best, median=median or best)


def test_unsteady_ceilings_that_matter_are_not_used():
    measured = [ceiling("device memory", "copy", 1e10, 4e9), ceiling("matrix", "fp32", 9e9, 1e9)]
    measured += [
        ceiling("matrix", "bf16", 9e9, 1e9),
        ceiling("launch", "enqueue", 2e-6, 9e-6),
        ceiling("cache", "read", 1e11),
    ]
    opened = opening(request(ceilings=CeilingChoice.NEEDED), bytes=1000, flops=1000)
    report = report_of([*opened, ceilings(*measured), *samples({}), *END])
    names = ["device memory copy", "matrix fp32"]
    assert report.findings == [finding("ceilings_not_used", ceilings=names, times=1.5)]
    assert codes(report_of([*opening(bytes=1000), ceilings(*measured), *samples({}), *END])) == []


@pytest.mark.parametrize(
    ("counted", "expected"),
    [(1000, False), (1090, False), (1200, True), (800, True), (None, False)],
)
def test_declared_operations_that_torch_counts_otherwise(counted, expected):
    opened = opening(request(ceilings=CeilingChoice.NEEDED), flops=1000)
    report = report_of(
        [*opened, e.Counted(variant="b", operations=3, flops=counted, t=0.3), *samples({}), *END]
    )
    assert report.findings == (
        [finding("flops_differ", "b", declared=1000, counted=counted)] if expected else []
    )
    assert report.variant("b").flops_counted == counted
    assert report.variant("b").operations == 3


@pytest.mark.parametrize(("share", "ratio"), [(50.0, None), (90.0, 1.8)])
def test_a_gpu_that_counts_more_bytes_than_declared(share, ratio):
    """An H200 moves 4.8 TB/s: half of it for 2 s in 1000 steps is what these steps declare."""
    nominal = 3201e6 * 2 * 6016 / 8
    opened = opening(
        request(device="cuda", ceilings=CeilingChoice.NEEDED, telemetry="on"),
        device=H200,
        bytes=int(nominal / 1000),
    )
    readings = [
        Telemetry(t=5.0 + 0.2 * n, since=4.8 + 0.2 * n, values={"dram": share})
        for n in range(1, 11)
    ]
    solo = e.SoloRun(variant="b", started=5.0, ended=7.0, steps=1000, time_s=1e-3, t=7.0)
    events = [
        *opened,
        TelemetryStarted(**GPU, t=0.35),
        *samples({}, spread=0.0),
        *readings,
        solo,
        *END,
    ]
    expected = (
        [finding("moves_more_bytes", "b", ratio=pytest.approx(ratio, rel=1e-6))] if ratio else []
    )
    assert findings(report_of(events), "moves_more_bytes") == expected
    started = replace(
        opened[0],
        request=replace(opened[0].request, job=replace(opened[0].request.job, roof=LINKS[0])),
    )
    # the bytes are those of the link
    assert findings(report_of([started, *events[1:]]), "moves_more_bytes") == []
