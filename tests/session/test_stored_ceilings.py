"""Ceilings are taken again for the same device in the same state, and for no other."""

from datetime import UTC, datetime, timedelta

import pytest
from found import finding
from msgspec.structs import replace

from gpulab.core import events as e
from gpulab.core.jobs import Calibrate, Measure, RunRequest, ScenarioFile
from gpulab.core.machine import Device
from gpulab.core.statuses import CeilingChoice
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured
from gpulab.features.telemetry.events import TelemetryStarted
from gpulab.session.ceilings import CeilingCache

COMPLETE = CeilingsMeasured(
    at="2026-11-20T00:00:00+00:00",
    ceilings=(Ceiling(roof="matrix", kind="bf16", unit="FLOP/s", best=2.0, median=1.9),),
    complete=True,
)
PARTIAL = CeilingsMeasured(at="2026-11-22T00:00:00+00:00", ceilings=COMPLETE.ceilings)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def measure(env=None, ceilings=CeilingChoice.NEEDED):
    subject = ScenarioFile(scenario="x", path="", source_sha256="", variants=(), env=env or {})
    return Measure(subject=subject, ceilings=ceilings)


def ready(*, uuid="GPU-1", driver="580.1", torch="2.13", threads=1, kind="cuda"):
    device = Device(kind=kind, name="NVIDIA H200", uuid=uuid, threads=threads)
    return e.WorkerReady(pid=1, device=device, environment={"driver": driver, "torch": torch})


def sampled(*, uuid="GPU-1", watts=700.0):
    return TelemetryStarted(gpu="NVIDIA H200", uuid=uuid, limits={"power": watts})


def watch(*events, job=None, telemetry="on"):
    """What a run that sees these events is given of its device."""
    cache = CeilingCache(RunRequest(job=job or measure(), telemetry=telemetry))
    return [
        ceilings
        for event in (*events, e.RunEnded(outcome="done"))
        if (ceilings := cache.on_event(event))
    ]


def test_what_one_run_measures_the_next_one_has_as_soon_as_both_processes_have_their_device():
    assert watch(ready(), sampled(), COMPLETE) == []  # the first has to measure
    (cached,) = watch(ready(), sampled())
    assert (cached.ceilings, cached.at, cached.cached) == (COMPLETE.ceilings, COMPLETE.at, True)
    (cached,) = watch(sampled(), ready())
    assert cached.cached
    assert watch(ready()) == []  # nobody has said yet what its power limit is


@pytest.mark.parametrize(
    "events",
    [
        (ready(uuid="GPU-2"), sampled(uuid="GPU-2")),
        (ready(driver="590.1"), sampled()),
        (ready(torch="2.14"), sampled()),
        (ready(threads=2), sampled()),
        (ready(), sampled(watts=500.0)),
    ],
)
def test_another_device_or_another_state_of_it_is_measured_anew(events):
    watch(ready(), sampled(), COMPLETE)
    assert watch(*events) == []


def test_where_nobody_read_the_power_limit_the_newest_of_any_holds():
    watch(ready(), sampled(watts=500.0), COMPLETE)
    newer = replace(COMPLETE, at="2026-11-21T00:00:00+00:00", cache_bytes=7)
    watch(ready(), sampled(watts=700.0), newer)
    watch(ready(uuid="GPU-2"), sampled(uuid="GPU-2"), COMPLETE)
    (cached,) = watch(ready(), telemetry="off")
    assert (cached.at, cached.cache_bytes) == (newer.at, 7)
    # another GPU is sampled: its limit says nothing of this one
    (cached,) = watch(ready(), sampled(uuid="GPU-2"))
    assert cached.at == newer.at
    (cached,) = watch(ready(), sampled(watts=500.0))
    assert cached.at == COMPLETE.at
    assert watch(ready(driver="590.1"), telemetry="off") == []


def test_a_calibration_measures_whatever_is_cached_and_replaces_it():
    watch(ready(), sampled(), COMPLETE)
    assert watch(ready(), sampled(), job=Calibrate()) == []
    newer = replace(COMPLETE, at="2026-11-21T00:00:00+00:00")
    watch(ready(), sampled(), newer, job=Calibrate())
    assert watch(ready(), sampled())[0].at == newer.at


def test_what_a_run_that_failed_measured_is_not_kept():
    cache = CeilingCache(RunRequest(job=measure()))
    for event in (ready(), sampled(), COMPLETE, e.RunEnded(outcome="failed")):
        cache.on_event(event)
    assert watch(ready(), sampled()) == []


@pytest.mark.parametrize("outcome", ["cancelled", "timeout"])
def test_what_an_interrupted_run_had_measured_by_then_is_kept(outcome):
    cache = CeilingCache(RunRequest(job=measure()))
    for event in (ready(), sampled(), COMPLETE, e.RunEnded(outcome=outcome)):
        cache.on_event(event)
    assert [known.at for known in watch(ready(), sampled())] == [COMPLETE.at]


def minutes_ago(minutes, *, dtype="fp32", lacks=""):
    """A pass of a run on a CPU."""
    at = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    keys = {"device memory": "update", "cache": "update", "matrix": dtype, "launch": "enqueue"}
    keys.pop(lacks, None)
    ceilings = [
        Ceiling(roof=roof, kind=kind, unit="B/s", best=2.0, median=1.9)
        for roof, kind in keys.items()
    ]
    return CeilingsMeasured(at=at, ceilings=tuple(ceilings))


def test_what_a_run_on_a_cpu_has_measured_holds_for_an_hour_and_alone():
    cpu = ready(kind="cpu", uuid=None)
    watch(cpu, minutes_ago(61), telemetry="off")
    assert watch(cpu, telemetry="off") == []
    watch(cpu, minutes_ago(59), telemetry="off")
    assert len(watch(cpu, telemetry="off")) == 1
    newer = minutes_ago(0, dtype="bf16")
    watch(cpu, newer, telemetry="off")
    (known,) = watch(cpu, telemetry="off")
    assert (known.ceilings, known.at, known.cached) == (newer.ceilings, newer.at, True)


def test_roofs_of_a_cpu_are_those_of_one_machine(monkeypatch):
    cpu = ready(kind="cpu", uuid=None)
    watch(cpu, minutes_ago(1), telemetry="off")
    monkeypatch.setenv("GPULAB_HOST", "another")
    assert watch(cpu, telemetry="off") == []


def test_a_calibration_of_a_cpu_that_was_disturbed_replaces_what_was_known():
    cpu = ready(kind="cpu", uuid=None)
    watch(cpu, minutes_ago(9), telemetry="off")
    newer = minutes_ago(1)
    watch(cpu, newer, telemetry="off", job=Calibrate())
    assert [known.at for known in watch(cpu, telemetry="off")] == [newer.at]


def test_kept_roofs_of_a_cpu_are_enough_for_work_in_their_dtypes():
    cpu = ready(kind="cpu", uuid=None)
    for dtype, lacks, is_enough in (
        ("fp32", "", True),
        ("bf16", "", False),
        ("fp32", "launch", False),
        ("fp32", "cache", False),
    ):
        watch(cpu, minutes_ago(1, lacks=lacks), telemetry="off")
        cache = CeilingCache(RunRequest(job=measure(), telemetry="off"))
        for event in (
            cpu,
            e.Built(variant="a", build_s=0.1, first_step_s=0.1, items=1.0, flops=1.0, dtype=dtype),
        ):
            cache.on_event(event)
        assert cache.is_enough == is_enough


def test_what_a_run_on_a_gpu_has_measured_is_kept_beside_what_was_known():
    watch(ready(), sampled(), COMPLETE)
    watch(ready(), sampled(), PARTIAL)
    (known,) = watch(ready(), sampled())
    keys = {ceiling.key for measured in (COMPLETE, PARTIAL) for ceiling in measured.ceilings}
    assert {ceiling.key for ceiling in known.ceilings} == keys


def test_the_environment_that_a_scenario_asks_for_is_no_property_of_the_device():
    watch(ready(), sampled(), COMPLETE, job=measure(env={"CUDA_LAUNCH_BLOCKING": "1"}))
    assert watch(ready(), sampled()) == []


def test_what_an_invalid_run_measured_is_not_kept():
    watch(ready(), sampled(), COMPLETE, e.RunInvalid(reason=finding("event_repeated", number=1)))
    assert watch(ready(), sampled()) == []


def test_a_calibration_that_was_cut_short_is_not_kept():
    watch(ready(), sampled(), PARTIAL, job=Calibrate())
    assert watch(ready(), sampled()) == []


def test_what_came_out_of_the_cache_is_not_put_in_again():
    stale = replace(COMPLETE, cached=True)
    watch(ready(), sampled(), stale)
    assert watch(ready(), sampled()) == []


@pytest.mark.parametrize("known", [("device memory", "cache"), ("device memory", "host to device")])
def test_ceilings_that_leave_out_a_roof_of_the_run_are_not_enough(known):
    ceilings = tuple(
        Ceiling(roof=roof, kind=roof, unit="B/s", best=2.0, median=1.9) for roof in known
    )
    watch(ready(), sampled(), replace(PARTIAL, ceilings=ceilings))
    cache = CeilingCache(RunRequest(job=replace(measure(), roof="host to device"), telemetry="on"))
    for event in (ready(), sampled()):
        cache.on_event(event)
    assert not cache.is_enough
