"""Telemetry and the device clock on a real device."""

import json
import re

import pytest

from gpulab.run.needs import missing

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(missing("cuda") is not None, reason=missing("cuda") or "")]

BUSY = '''
import torch
from gpulab import Scenario, Work
scenario = Scenario("cuda", clock="{clock}", cache="{cache}")

@scenario.variant
def large(lab):
    """A product that fills the device."""
    a = torch.randn(8192, 8192, device=lab.device, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return Work(lambda: torch.mm(a, a, out=out), inputs=a, output=out, flops=2 * 8192**3, dtype="bf16")

@scenario.variant(against=None)
def copy(lab):
    """Nothing but memory."""
    a = torch.randn(1 << 28, device=lab.device)
    out = torch.empty_like(a)
    return Work(lambda: out.copy_(a), inputs=a, output=out, bytes=2 * a.nbytes)

@scenario.variant(against=None)
def tiny(lab):
    """Launches, and next to nothing to do."""
    a = torch.randn(64, device=lab.device)
    out = torch.empty_like(a)
    def step():
        for _ in range(20):
            torch.add(a, 1, out=out)
    return Work(step, inputs=a, output=out)

@scenario.variant(against=None)
def crowd(lab):
    """More launches than a queue holds."""
    a = torch.randn(64, device=lab.device)
    out = torch.empty_like(a)
    def step():
        for _ in range(3000):
            torch.add(a, 1, out=out)
    return Work(step, inputs=a, output=out)
'''


def run(lab, *arguments, clock="wall", cache="hot"):
    path = lab.write("busy.py", BUSY.format(clock=clock, cache=cache))
    done = lab.call("--run", path, "--device", "cuda:0", "--json", "--output", "run.jsonl", *arguments)
    assert done.code == 0, done.stderr
    done.result = json.loads(done.stdout)
    return done


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    from conftest import Lab

    return run(Lab(tmp_path_factory.mktemp("busy")), "--time", "4", clock="device")


def test_what_each_variant_does_shows_while_it_is_alone(measured):
    print(measured.stderr)
    assert re.match(r"GPU-[0-9a-f-]{36}", measured.run["telemetry"]["uuid"])
    assert measured.run["telemetry"]["uuid"] == measured.run["device"]["uuid"]
    large, copy, tiny = (measured.variant(name)["soak"]["means"] for name in ("large", "copy", "tiny"))
    assert large["sm"] > 80
    assert large["tensor"] > 40
    assert copy["dram"] > 60
    assert copy["tensor"] < 3
    assert tiny["occupancy"] < 5
    assert large["power"] > tiny["power"]
    assert measured.variant("large")["soak"]["energy_j"] > 0
    assert all(2 <= one["soak"]["seconds"] < 4 for one in measured.run["variants"])


def test_both_clocks_stand_in_every_result(measured):
    large, tiny = measured.variant("large")["clocks"], measured.variant("tiny")["clocks"]
    assert large["wall"] == pytest.approx(large["device"], rel=0.05)
    assert tiny["device"] < 0.8 * tiny["wall"]
    assert measured.run["method"]["clock"] == "device"
    # Queued behind the spin, the device takes a kernel after the other.
    assert "wall / device clock" in measured.stderr


def test_the_device_clock_agrees_with_triton_s(measured):
    do_bench = pytest.importorskip("triton.testing").do_bench
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    theirs = do_bench(lambda: torch.mm(a, a, out=out), return_mode="median") * 1e-3
    ours = measured.variant("large")["clocks"]["device"]
    print(f"device clock {ours * 1e6:.1f} us, do_bench {theirs * 1e6:.1f} us, ratio {ours / theirs:.4f}")
    assert ours == pytest.approx(theirs, rel=0.1)  # another process, another power state


def test_cold_caches_are_slower_for_what_would_fit_them(lab):
    path = lab.write(
        "cold.py",
        BUSY.replace("1 << 28", "1 << 22").format(clock="device", cache="cold"),
    )
    hot = lab.write("hot.py", BUSY.replace("1 << 28", "1 << 22").format(clock="device", cache="hot"))
    times = {}
    for file in (path, hot):
        out = file.with_suffix(".json")
        done = lab.call("--run", file, "--device", "cuda:0", "--time", "2", "--json", out, "--telemetry", "off")
        assert done.code == 0, done.stderr
        found = json.loads(out.read_text())["runs"][0]
        times[file.stem] = next(one for one in found["variants"] if one["name"] == "copy")["clocks"]["device"]
        assert found["method"]["cache"] == file.stem
    print(times)
    assert times["cold"] > 1.2 * times["hot"]


def test_the_spin_knows_the_clock_of_the_sms(measured):
    clocks = [mhz for event in _samples(measured) for mhz in event.sm_mhz if mhz]
    limit = measured.run["telemetry"]["limits"]["sm_clock"]
    print(f"SM clock by the spin: {min(clocks):.0f} to {max(clocks):.0f} MHz, at most {limit:.0f}")
    assert 0.3 * limit < min(clocks) <= max(clocks) < 1.05 * limit


def _samples(done):
    from gpulab.model.events import Samples
    from gpulab.run.record import read

    return [event for event in read(done.run_file).events if isinstance(event, Samples)]
