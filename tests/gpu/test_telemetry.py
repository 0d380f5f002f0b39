"""Telemetry and the device clock on a real device."""

import json
import re
from pathlib import Path

import pytest

from gpulab.catalog.needs import missing

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(missing("cuda") is not None, reason="no CUDA device"),
]

BUSY = (Path(__file__).parents[2] / "benchmarks" / "device" / "steps" / "busy.py").read_text()
CROWD = '''

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


def run(lab, source, *arguments):
    path = lab.write("busy.py", source)
    done = lab.call(
        "--run", path, "--device", "cuda:0", "--json", "--output", "run.jsonl", *arguments
    )
    assert done.code == 0, done.stderr
    done.result = json.loads(done.stdout)
    return done


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    from conftest import Lab

    lab = Lab(tmp_path_factory.mktemp("busy"))
    lab.env["XDG_CACHE_HOME"] = str(tmp_path_factory.getbasetemp() / "cache")
    lab.timeout_s = 300
    return run(lab, BUSY + CROWD, "--time", "4", "--profile", "all", "--verbose")


def test_what_each_variant_does_shows_while_it_is_alone(measured):
    print(measured.stderr)
    assert re.match(r"GPU-[0-9a-f-]{36}", measured.run["telemetry"]["uuid"])
    assert measured.run["telemetry"]["uuid"] == measured.run["device"]["uuid"]
    product, copy, launches = (
        measured.variant(name)["solo_run"]["means"] for name in ("product", "copy", "launches")
    )
    assert product["sm_percent"] > 80
    assert product["tensor_percent"] > 40
    assert copy["dram_percent"] > 60
    assert copy["tensor_percent"] < 3
    assert launches["occupancy_percent"] < 5
    assert product["power_w"] > launches["power_w"]
    assert measured.variant("product")["solo_run"]["energy_j"] > 0
    assert all(1 <= variant["solo_run"]["seconds"] < 3 for variant in measured.run["variants"])


def test_both_clocks_stand_in_every_result(measured):
    product, launches = (
        measured.variant("product")["clocks_s"],
        measured.variant("launches")["clocks_s"],
    )
    assert product["wall"] == pytest.approx(
        product["device"], rel=0.25
    )  # a busy host launches late
    assert launches["device"] < 0.8 * launches["wall"]
    assert measured.run["method"]["clock"] == "device"


def test_the_device_clock_agrees_with_triton_s(measured):
    do_bench = pytest.importorskip("triton.testing").do_bench
    import torch

    # a product would be held at the power cap, after some milliseconds
    a = torch.randn(1 << 28, device="cuda")
    out = torch.empty_like(a)
    do_bench_s = do_bench(lambda: out.copy_(a), return_mode="median") * 1e-3
    clock_s = measured.variant("copy")["clocks_s"]["device"]
    print(
        f"device clock {clock_s * 1e6:.1f} us, do_bench {do_bench_s * 1e6:.1f} us, "
        f"{clock_s / do_bench_s:.4f}"
    )
    assert clock_s == pytest.approx(do_bench_s, rel=0.1)


def test_cold_caches_are_slower_for_what_would_fit_them(lab):
    small = BUSY.replace("1 << 28", "1 << 22")
    times = {}
    for cache in ("cold", "hot"):
        source = small.replace('clock="device"', f'clock="device", cache="{cache}"')
        done = run(lab, source, "--time", "2", "--telemetry", "off")
        times[cache] = done.variant("copy")["clocks_s"]["device"]
        assert done.run["method"]["cache"] == cache
        done.run_file.unlink()
    print(times)
    assert times["cold"] > 1.2 * times["hot"]


def test_the_spin_knows_the_clock_of_the_sms(measured):
    clocks = [mhz for event in _samples(measured) for mhz in event.sm_mhz if mhz]
    limit = measured.run["telemetry"]["limits"]["sm_clock_mhz"]
    print(f"SM clock by the spin: {min(clocks):.0f} to {max(clocks):.0f} MHz, at most {limit:.0f}")
    assert 0.3 * limit < min(clocks) <= max(clocks) < 1.05 * limit


def _samples(done):
    from gpulab.core.events import Samples
    from gpulab.core.run_file import read_run_file

    return [event for event in read_run_file(done.run_file).events if isinstance(event, Samples)]
