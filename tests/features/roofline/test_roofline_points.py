"""Where a run's evidence puts a variant on the roofline: what of the events becomes a fact of the
step.
"""

from datetime import datetime, timedelta

import msgspec
import pytest
from devices import H200
from synthetic_runs import CPU, END, opening, report_of, request, run_of, samples

from gpulab.core import events as e
from gpulab.core.jobs import Calibrate, RunRequest, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.statuses import Cache, CeilingChoice, Clock
from gpulab.draw.blocks import Text
from gpulab.features.goodput.events import Partition, Phases, Profiled
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured, RoofProbed
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import roofline_blocks
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted

MEASURED = (
    ("device memory", "copy", 1e10),
    ("cache", "read", 1e11),
    ("matrix", "fp32", 1e12),
    ("launch", "enqueue", 1e-6),
)


def ceilings(*measured, **fields):
    roofs = [
        Ceiling(roof=roof, kind=kind, unit="", best=best, median=best)
        for roof, kind, best in measured
    ]
    return CeilingsMeasured(ceilings=tuple(roofs), at="2026-01-01T00:00:00+00:00", t=0.3, **fields)


def point_of(*later, job=None, device=CPU, measured=MEASURED, cache_bytes=None, **built):
    """The point of a, whose step takes a millisecond."""
    run_request = request(ceilings=CeilingChoice.NEEDED, **(job or {}))
    opened = [
        *opening(run_request, device=device, **built),
        ceilings(*measured, cache_bytes=cache_bytes),
    ]
    return report_of(run_of({"b": 0.5}, opened=opened, later=later)).variant("a").roofline


def test_nothing_is_placed_without_ceilings_or_without_declared_work():
    plain = report_of(run_of({}, opened=[*opening(bytes=1000), ceilings(*MEASURED)]))
    assert (plain.ceilings, plain.variants[0].roofline, roofline_of(plain)) == (None, None, None)
    assert point_of() is None
    assert point_of(measured=(), bytes=1000) is None


def test_a_point_has_its_rate_its_interval_and_its_share_of_the_roof():
    report = report_of(
        run_of(
            {},
            opened=[
                *opening(request(ceilings=CeilingChoice.NEEDED), bytes=8_000_000),
                ceilings(*MEASURED),
            ],
        )
    )
    variant = report.variant("a")
    point, time = variant.roofline, variant.time_s
    assert point.rate.value == pytest.approx(8e6 / time.value)
    assert point.rate.ends == pytest.approx((8e6 / time.high, 8e6 / time.low))
    assert point.fraction.value == pytest.approx(point.rate.value / 1e10)
    assert (point.bound, point.reason.code, point.bytes_counted) == (
        "memory",
        "near_memory_roof",
        None,
    )
    assert variant.bytes_per_s == pytest.approx(point.rate.value)
    assert (report.ceilings.at, report.ceilings.cached) == ("2026-01-01T00:00:00+00:00", False)
    assert [ceiling.roof for ceiling in report.ceilings.ceilings] == [
        roof for roof, _, _ in MEASURED
    ]


def test_a_phase_that_waits_is_why_a_step_is_far_from_every_roof():
    phases = Phases(
        variant="a", steps=3, seconds={"": 1.0, "data": 6.0, "copy": 1.0, "own": 2.0}, t=50.0
    )
    point = point_of(phases, bytes=1000)
    assert (point.bound, point.reason.code) == ("latency", "phase_waits")
    assert (point.reason.values["phase"], point.reason.values["share"]) == (
        "data",
        pytest.approx(0.6),
    )
    brief = Phases(variant="a", steps=3, seconds={"": 1.0, "own": 9.0}, t=50.0)
    assert point_of(brief, bytes=1000).reason.code == "unexplained"


def test_both_clocks_tell_how_long_the_device_waits_for_the_host():
    device_time = e.OtherClock(
        variant="a", clock=Clock.DEVICE, times_s=[0.2e-3, 0.3e-3, 0.25e-3], t=50.0
    )
    counted = e.Counted(variant="a", operations=500, flops=None, t=50.0)
    point = point_of(device_time, counted, job={"device": "cuda"}, device=H200, bytes=1000)
    assert (point.reason.code, point.reason.values["share"]) == (
        "device_waits_for_launches",
        pytest.approx(0.75, rel=0.01),
    )
    exposed = e.OtherClock(variant="a", clock=Clock.DEVICE, times_s=[0.25e-3], exposed=True, t=50.0)
    assert (
        point_of(exposed, job={"device": "cuda"}, device=H200, bytes=1000).reason.code
        == "unexplained"
    )


def test_a_time_on_the_device_clock_has_no_launches_of_the_host_in_it():
    counted = e.Counted(variant="a", operations=800, flops=None, t=50.0)
    point = point_of(
        counted, job={"clock": Clock.DEVICE, "device": "cuda"}, device=H200, bytes=1000
    )
    assert point.reason.code == "unexplained"


def test_the_cache_is_what_was_seen_of_it_else_half_of_what_the_system_reports():
    large = Device(kind="cpu", name="c", l2_bytes=10_000_000)
    fast_in_memory = {"bytes": 7_000_000, "device": large}
    assert point_of(**fast_in_memory).reason.code == "near_memory_roof"
    assert point_of(**fast_in_memory, cache_bytes=7_000_000).reason.code == "bytes_fit_cache"
    assert point_of(**fast_in_memory, cache_bytes=1_000_000).reason.code == "near_memory_roof"
    small = {
        "bytes": 4_900_000,
        "device": large,
        "measured": (("device memory", "copy", 7e9), *MEASURED[1:]),
    }
    assert point_of(**small).reason.code == "bytes_fit_cache"
    assert point_of(**small, job={"cache": Cache.COLD}).reason.code == "near_memory_roof"


def test_the_profile_tells_what_the_host_does_while_the_device_waits():
    """Kernels take as long under the profiler: what is left of the step, the device waited."""
    seconds = {"useful": 0.3, "launch-bound": 1.2, "other": 0.4}
    partition = Partition(window_s=1.9, seconds=seconds, marked=False, on_device=True)
    profiled = Profiled(
        variant="a",
        steps=1000,
        plain_s=1e-3,
        profiled_s=1.9e-3,
        partition=partition,
        operations=[],
        repeatable=True,
    )
    point = point_of(
        msgspec.structs.replace(profiled, t=50.0), job={"device": "cuda"}, device=H200, bytes=1000
    )
    assert (point.bound, point.reason.code) == ("launch", "device_waits_for_launches")
    assert point.reason.values["share"] == pytest.approx(0.7, rel=0.01)
    other = msgspec.structs.replace(
        partition, seconds={**seconds, "launch-bound": 0.2, "other": 1.4}
    )
    idle = msgspec.structs.replace(profiled, partition=other, t=50.0)
    assert point_of(idle, job={"device": "cuda"}, device=H200, bytes=1000).bound == "host"
    unrepeatable = msgspec.structs.replace(profiled, repeatable=False, t=50.0)
    assert (
        point_of(unrepeatable, job={"device": "cuda"}, device=H200, bytes=1000).bound
        == "unexplained"
    )


def test_code_outside_of_torch_is_named_where_no_operation_takes_longer():
    partition = Partition(
        window_s=1.0, seconds={"useful": 0.0, "other": 1.0}, marked=False, on_device=False
    )
    profiled = Profiled(
        variant="a",
        steps=1000,
        plain_s=1e-3,
        profiled_s=1e-3,
        partition=partition,
        operations=[],
        repeatable=True,
        t=50.0,
    )
    point = point_of(profiled, bytes=1000)
    assert (point.bound, point.reason.values["share"]) == ("unexplained", pytest.approx(1.0))
    assert point.reason.values["operation"].startswith("code outside")


def test_page_faults_explain_a_step_by_what_one_costs():
    calibrated = e.Calibrated(
        variant="a", steps_per_block=1, step_s=1e-3, empty_block_s=0.0, t=50.0
    )
    measured = (*MEASURED, ("page fault", "", 6e-4))
    assert point_of(calibrated, bytes=1000, measured=measured).bound == "page faults"
    assert point_of(calibrated, bytes=1000).bound == "unexplained"


def test_a_roof_of_arithmetic_is_scaled_to_the_clock_that_the_device_clock_showed():
    """The roof was measured at 1,500 MHz, below a power cap; the step's blocks ran at 1,800."""
    product = Ceiling(
        roof="matrix", kind="bf16", unit="FLOP/s", best=1e12, median=1e12, sm_mhz=1500.0
    )
    measured = CeilingsMeasured(ceilings=(product,), t=0.3)
    times = e.OtherClock(
        variant="a", clock=Clock.DEVICE, times_s=[1e-3, 1e-3], sm_mhz=[1790.0, 1810.0], t=50.0
    )
    run_request = request(ceilings=CeilingChoice.NEEDED, device="cuda")
    opened = [*opening(run_request, device=H200, flops=10**9, dtype="bf16"), measured]
    report = report_of(run_of({}, opened=opened, later=[times]))
    point = report.variant("a").roofline
    assert (point.attainable, point.clock_scale) == pytest.approx((1.2e12, 1.2))
    assert point.fraction.value == pytest.approx(point.rate.value / 1.2e12)
    assert report.variant("b").roofline.clock_scale == 1.0  # nobody read its clock


@pytest.mark.parametrize(
    "job", [{}, {"roof": "matrix"}, {"roof": "vector"}, {"roof": "device memory"}]
)
def test_the_roof_of_arithmetic_is_the_same_whichever_a_scenario_names(job):
    assert (
        point_of(flops=7 * 10**8, measured=(*MEASURED, ("vector", "fp32", 4e12)), job=job).roof
        == "vector fp32"
    )


def probed(process, roof_s, ratios, *, roof="device memory", kind="update", amount=8_000_000):
    return RoofProbed(
        process=process,
        roof=roof,
        kind=kind,
        amount=amount,
        time_s=roof_s,
        blocks=5,
        ratios=ratios,
        t=50.0,
    )


def test_a_roof_that_took_turns_with_the_variants_is_theirs_whatever_it_was_at_another_time():
    """The machine is twice as fast in half of the processes; both show the same share."""
    turns = [probed(n, 0.5e-3 + 0.01e-3 * n, {"a": 0.6 + 0.001 * n, "b": 1.2}) for n in range(9)]
    point = point_of(*turns, bytes=8_000_000)
    assert (point.roof, point.roof_processes) == ("device memory update", 9)
    assert (point.fraction.value, *point.fraction.ends) == pytest.approx((0.604, 0.6, 0.608))
    assert point.attainable == pytest.approx(8e6 / 0.54e-3)
    report = report_of(
        run_of(
            {},
            opened=[
                *opening(request(ceilings=CeilingChoice.NEEDED), bytes=1000),
                ceilings(*MEASURED),
            ],
            later=turns,
        )
    )
    (ceiling,) = [ceiling for ceiling in report.ceilings.ceilings if ceiling.processes]
    assert (ceiling.name, ceiling.samples, ceiling.source) == (
        "device memory update",
        45,
        "measured",
    )
    assert ceiling.ends == pytest.approx((8e6 / 0.58e-3, 8e6 / 0.5e-3))


@pytest.mark.parametrize(
    ("share", "restored", "ratio"),
    [(50.0, 0, None), (58.0, 0, None), (65.0, 0, 1.3), (30.0, 0, 0.6), (65.0, 300, None)],
)
def test_bytes_that_the_device_counted_stand_beside_those_declared(share, restored, ratio):
    """Half of an H200's bandwidth for 2 s is what 1000 steps declare; restoring state moves bytes
    of no step.
    """
    declared = int(3201e6 * 2 * 6016 / 8 / 1000)
    run_request = request(ceilings=CeilingChoice.NEEDED, telemetry="on", device="cuda")
    opened = [
        *opening(run_request, device=H200, bytes=declared),
        TelemetryStarted(gpu="H200", uuid="G", t=0.35),
    ]
    readings = [
        Telemetry(t=50.0 + 0.2 * n, since=49.8 + 0.2 * n, values={"dram": share})
        for n in range(1, 11)
    ]
    moved = restored * declared
    solo = e.SoloRun(
        variant="a", started=50.0, ended=52.0, steps=1000, time_s=1e-3, restored_bytes=moved, t=52.0
    )
    report = report_of([*opened, *samples({}), *readings, solo, *END])
    point = report.variant("a").roofline
    assert point.bytes_ratio == (None if ratio is None else pytest.approx(ratio, rel=0.01))
    assert point.bytes_counted == pytest.approx(share / 50 * declared - moved / 1000, rel=0.01)
    assert report.variant("b").roofline.bytes_counted is None


def test_arrows_lead_from_what_a_variant_is_compared_with_last():
    infos = tuple(VariantInfo(name=name, against=None if name == "a" else "a") for name in "abcd")
    names = ("a", "control", "b", "c", "d")

    def arrows(**job):
        run_request = request(*infos, ceilings=CeilingChoice.NEEDED, **job)
        opened = [*opening(run_request, bytes=1000), ceilings(*MEASURED)]
        roofline = roofline_of(
            report_of(run_of({"b": 0.5, "c": 0.4, "d": 0.3}, opened=opened, names=names))
        )
        assert [point.variant for point in roofline.points] == list("abcd")
        return roofline.arrows

    assert arrows(ladder=True) == [(0, 1), (1, 2), (2, 3)]
    assert arrows() == []  # three from one point would only tangle
    two = opening(request(*infos[:3], ceilings=CeilingChoice.NEEDED), bytes=1000)
    report = report_of(run_of({}, opened=[*two, ceilings(*MEASURED)], names=names[:4]))
    assert roofline_of(report).arrows == [(0, 1), (0, 2)]


def test_a_calibration_reports_all_ceilings_and_no_variant():
    started = e.RunStarted(request=RunRequest(job=Calibrate()), at="", host="h", t=0.0)
    ready = e.WorkerReady(pid=1, device=CPU, environment={"torch": "2.9"}, t=0.1)
    report = report_of([started, ready, ceilings(*MEASURED, cached=True), END[1]])
    assert (report.scenario, report.variants, report.comparisons, report.exit_code) == (
        "calibration",
        [],
        [],
        0,
    )
    assert (len(report.ceilings.ceilings), report.ceilings.cached) == (4, True)
    assert report.environment == {"torch": "2.9"}
    assert (report.baseline, report_of(run_of({})).baseline) == (None, "a")


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(0.2, "1 min earlier"), (12, "12 min earlier"), (180, "3 h earlier"), (None, "")],
)
def test_a_line_says_how_long_before_the_run_kept_roofs_were_measured(minutes, words):
    before = timedelta(minutes=minutes or 0)
    started = datetime.fromisoformat("2026-01-01T00:00:00+00:00") + before
    kept = ceilings(*MEASURED, cached=minutes is not None)
    events = [*opening(request(ceilings=CeilingChoice.NEEDED), bytes=1000), kept]
    events[0] = msgspec.structs.replace(events[0], at=started.isoformat())
    report = report_of(run_of({}, opened=events))
    notes = [
        block.plain for block in roofline_blocks(roofline_of(report)) if isinstance(block, Text)
    ]
    said = [note for note in notes if "earlier" in note]
    assert said == ([f"roofs that the rounds did not measure: of a run {words}"] if words else [])
