"""Ceilings are found again for the same device in the same state, and for no other."""

import pytest

from gpulab.model import events as e
from gpulab.model.ceilings import Ceiling
from gpulab.model.request import Device, RunRequest
from gpulab.run.ceilings import CeilingCache

FOUND = e.CeilingsMeasured(
    at="2026-11-20T00:00:00+00:00",
    ceilings=(Ceiling(roof="matrix", kind="bf16", unit="FLOP/s", best=2.0, median=1.9),),
    whole=True,
)
PARTLY = e.CeilingsMeasured(at="2026-11-22T00:00:00+00:00", ceilings=FOUND.ceilings)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def request(**changes):
    return RunRequest(
        **{"scenario": "x", "path": "", "source_sha256": "", "variants": (), "ceilings": "needed"} | changes
    )


def ready(*, uuid="GPU-1", driver="580.1", torch="2.13", threads=1, kind="cuda"):
    device = Device(kind=kind, name="NVIDIA H200", uuid=uuid, threads=threads)
    return e.WorkerReady(pid=1, device=device, environment={"driver": driver, "torch": torch})


def sampled(*, uuid="GPU-1", watts=700.0):
    return e.TelemetryStarted(gpu="NVIDIA H200", uuid=uuid, limits={"power": watts})


def watch(*events, **changes):
    """What a run that sees these events is told of its device."""
    cache = CeilingCache(request(**changes))
    return [found for event in (*events, e.RunEnded(outcome="done")) if (found := cache.see(event))]


def test_what_one_run_finds_the_next_one_knows_as_soon_as_both_know_their_device():
    assert watch(ready(), sampled(), FOUND) == []  # the first has to measure
    (known,) = watch(ready(), sampled())
    assert (known.ceilings, known.at, known.cached) == (FOUND.ceilings, FOUND.at, True)
    (known,) = watch(sampled(), ready())
    assert known.cached
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
    watch(ready(), sampled(), FOUND)
    assert watch(*events) == []


def test_without_telemetry_they_are_kept_too():
    assert watch(ready(), FOUND, telemetry="off") == []
    assert len(watch(ready(), telemetry="off")) == 1
    assert watch(ready(), sampled()) == []  # whose power limit may differ


def test_where_nobody_read_the_power_limit_the_newest_of_any_holds():
    watch(ready(), sampled(watts=500.0), FOUND)
    newer = e.CeilingsMeasured(at="2026-11-21T00:00:00+00:00", ceilings=FOUND.ceilings, cache_bytes=7, whole=True)
    watch(ready(), sampled(watts=700.0), newer)
    watch(ready(uuid="GPU-2"), sampled(uuid="GPU-2"), FOUND)
    (known,) = watch(ready(), telemetry="off")
    assert (known.at, known.cache_bytes) == (newer.at, 7)
    (known,) = watch(ready(), sampled(uuid="GPU-2"))  # another GPU is sampled: its limit says nothing of this one
    assert known.at == newer.at
    (known,) = watch(ready(), sampled(watts=500.0))
    assert known.at == FOUND.at
    assert watch(ready(driver="590.1"), telemetry="off") == []


def test_a_calibration_measures_whatever_is_known_and_replaces_it():
    watch(ready(), sampled(), FOUND)
    assert watch(ready(), sampled(), ceilings="all") == []
    newer = e.CeilingsMeasured(at="2026-11-21T00:00:00+00:00", ceilings=FOUND.ceilings, whole=True)
    watch(ready(), sampled(), newer, ceilings="all")
    assert watch(ready(), sampled())[0].at == newer.at


def test_a_file_that_cannot_be_read_is_as_good_as_none(tmp_path):
    watch(ready(), sampled(), FOUND)
    (file,) = (tmp_path / "gpulab" / "ceilings").iterdir()
    file.write_text("{")
    assert watch(ready(), sampled()) == []


def test_what_was_measured_beside_a_run_on_a_cpu_is_not_kept_and_a_calibration_of_it_is(tmp_path):
    cpu = ready(kind="cpu", uuid=None)
    watch(cpu, PARTLY, telemetry="off")
    assert not (tmp_path / "gpulab").exists()
    watch(cpu, FOUND, telemetry="off", ceilings="all")
    assert watch(cpu, telemetry="off")[0].at == FOUND.at  # until the run has its own


def test_what_was_cut_short_or_unsteady_is_not_kept():
    watch(ready(), sampled(), PARTLY)
    assert watch(ready(), sampled()) == []


def test_a_run_that_has_measured_is_told_nothing_older():
    watch(ready(), FOUND, telemetry="off")
    assert watch(ready(), FOUND, e.TelemetryStarted(why="the driver did not answer before the run ended")) == []


def test_the_environment_that_a_scenario_asks_for_is_no_property_of_the_device():
    watch(ready(), sampled(), FOUND, env={"CUDA_LAUNCH_BLOCKING": "1"})
    assert watch(ready(), sampled()) == []


def test_what_came_out_of_the_cache_is_not_put_in_again():
    stale = e.CeilingsMeasured(at=FOUND.at, ceilings=FOUND.ceilings, cached=True, whole=True)
    watch(ready(), sampled(), stale)
    assert watch(ready(), sampled()) == []
