"""Lines of verify.py about the device and what reads it: doctor, counters, telemetry's own cost,
the tests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from commands import GPULAB
from judging import Bounds, points, row, within
from lesson_lines import STEPS, run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
POINTS = 10  # that a counter may differ from what was worked out
FLOPS_PER_CLOCK = 4096  # dense bf16, of one Hopper SM


def tests(place):
    """The tests that need a device."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"]
    command.append(str(ROOT / "tests" / "gpu"))
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    print(done.stdout[-3000:])
    yield row(
        "pytest -m gpu",
        "passes",
        done.stdout.strip().rpartition("\n")[2][:52],
        done.returncode == 0,
    )


def phases(place):
    """What a phase costs by events of the device."""
    command = [sys.executable, str(HERE.parent / "phases.py")]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=environment)
    costs = "; ".join(line.partition(": ")[2] for line in done.stdout.splitlines())
    yield row("a phase in a step of 1 ms", "< 1 %", costs[:52], done.returncode == 0)


def doctor(place):
    """What the doctor says of the machine."""
    done = subprocess.run(
        [*GPULAB, "--doctor", "--json"], check=False, stdout=subprocess.PIPE, text=True
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    for name in ("driver", "cuda:0"):
        check = checks[name]
        yield row(f"--doctor: {name}", "ok", check["result"][:52], check["status"] == "ok")


def counters(place):
    """What the hardware counts against what the work makes of the measured clock, over each solo
    run.
    """
    import pynvml
    import torch

    _, report = run(place, STEPS / "busy.py", "--time", "4")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(report["device"]["uuid"])
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    bus_bits = pynvml.nvmlDeviceGetMemoryBusWidth(handle)
    product, copy, launches, spin = report["variants"]
    means = product["solo_run"]["means"]
    of_the_clock = sms * FLOPS_PER_CLOCK * means["sm_clock_mhz"] * 1e6
    tensor = product["flops"] / product["solo_run"]["time_s"]["value"] / of_the_clock
    yield within(
        "GPM tensor of a bf16 product", points(tensor, POINTS), means["tensor_percent"] / 100, "%"
    )
    means = copy["solo_run"]["means"]
    dram = (
        copy["bytes"]
        / copy["solo_run"]["time_s"]["value"]
        / (means["memory_clock_mhz"] * 1e6 * 2 * bus_bits / 8)
    )
    yield within("GPM DRAM of a copy", points(dram, POINTS), means["dram_percent"] / 100, "%")
    means = spin["solo_run"]["means"]
    yield within(
        "busy of one thread that spins", Bounds(0.9, 1.0), means["busy_percent"] / 100, "%"
    )
    yield within(
        "SM of one thread that spins: one of all",
        Bounds(0.2 / sms, 4 / sms),
        means["sm_percent"] / 100,
        "%",
    )
    means, device_s = launches["solo_run"]["means"], launches["clocks_s"]["device"]
    # The counter was read while it ran alone, which takes another time than among the others.
    share = min(1.0, device_s / launches["solo_run"]["time_s"]["value"])
    yield within(
        "busy of a loop of launches, of its solo run",
        points(share, POINTS),
        means["busy_percent"] / 100,
        "%",
    )
    yield within(
        "SM of a loop of launches", Bounds(0.0, POINTS / 100), means["sm_percent"] / 100, "%"
    )
    yield within(
        "device over wall clock of launches",
        Bounds(0.05, 0.999),
        device_s / launches["clocks_s"]["wall"],
    )


def below_100_ms(place):
    """What GPM returns where two samples are too close."""
    code = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
import pynvml, torch
from gpulab.features.telemetry.gpu import Gpm
pynvml.nvmlInit()
gpm = Gpm(pynvml.nvmlDeviceGetHandleByIndex(0))
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for ms in (10, 20, 50, 80, 100, 120, 200, 400):
    gpm.sample()
    end = time.monotonic() + ms / 1e3
    while time.monotonic() < end:
        a @ a
        torch.cuda.synchronize()
    values = gpm.sample()
    print(f"{{ms}} ms: " + (f"tensor {{values['tensor']:.0f}} %" if "tensor" in values else "nothing"), end="; ")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, text=True
    )
    print("GPM by distance of its samples:", done.stdout)
    far = [part for part in done.stdout.split("; ") if part.startswith(("200", "400"))]
    reads = len(far) == 2 and all("%" in part for part in far)
    yield row("GPM below 100 ms", "printed above; 200 ms reads", "; ".join(far)[:52], reads)


def unprivileged(place):
    """Another user reads the counters too."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import pynvml
pynvml.nvmlInit()
from gpulab.features.telemetry.gpu import Gpm
Gpm(pynvml.nvmlDeviceGetHandleByIndex(0)); print("GPM reads")
"""
    user = {"user": 65534} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd="/", **user
    )
    output = done.stdout.strip() or done.stderr.strip().rpartition("\n")[2]
    yield row(
        f"unprivileged (uid {user.get('user', os.geteuid())})",
        "GPM reads",
        output[:52],
        done.returncode == 0,
    )
