"""Every line of the project that needs a CUDA device, in one command; ends with one table of what holds.

python tests/gpu/verify.py [FOLDER] [LINE ...]      # run files and JSON go to FOLDER, by default ./verify
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from lesson_lines import GPULAB, ceilings, lessons, library, memory, partition, roofline, run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
POINTS = 10  # that a counter may differ from what was worked out
FLOPS_PER_CLOCK = 4096  # dense bf16, of one Hopper SM


def main():
    arguments = sys.argv[1:]
    folder = Path(arguments[0] if arguments else "verify")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for line in [LINES[name] for name in arguments[1:]] or LINES.values():
        started = time.monotonic()
        try:
            results = list(line(folder))
        except Exception as error:
            results = [(line.__name__, "no exception", f"{type(error).__name__}: {error}"[:100], False)]
        print(f"[{line.__name__}: {time.monotonic() - started:.0f} s]", flush=True)
        rows += results
    print(f"\n{'line':44} {'expected':34} {'measured':44} holds")
    for title, expected, measured, holds in rows:
        print(f"{title:44} {expected:34} {measured:44} {'yes' if holds else 'NO'}")
    return not all(row[-1] for row in rows)


def tests(folder):
    """The tests that need a device."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider", str(HERE)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    print(done.stdout[-3000:])
    yield "pytest -m gpu", "passes", done.stdout.strip().rpartition("\n")[2][:44], done.returncode == 0


def phases(folder):
    """What a phase costs by events of the device."""
    command = [sys.executable, str(HERE.parent / "benchmarks" / "phases.py")]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=environment)
    costs = "; ".join(line.partition(": ")[2] for line in done.stdout.splitlines())
    yield "a phase in a step of 1 ms", "< 1 %", costs[:44], done.returncode == 0


def doctor(folder):
    """What the doctor says of the machine."""
    done = subprocess.run([*GPULAB, "--doctor", "--json"], check=False, stdout=subprocess.PIPE, text=True)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    for name in ("driver", "cuda:0"):
        values = ", ".join(str(value) for value in checks[name]["result"]["values"].values())
        yield f"--doctor: {name}", "ok", values[:44], checks[name]["status"] == "ok"


def counters(folder):
    """What the hardware counts against what the work makes of the measured clock."""
    import pynvml
    import torch

    _, report = run(folder, HERE / "busy.py", "--time", "4")
    product, copy, launches, spin = report["variants"]
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(report["device"]["uuid"])
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    means = product["solo_run"]["means"]
    worked = 100 * product["flops"] / product["solo_run"]["time_s"] / (sms * FLOPS_PER_CLOCK * means["sm_clock"] * 1e6)
    measured = f"{means['tensor']:.1f} % at {means['sm_clock']:.0f} MHz"
    yield (
        "GPM tensor % of a bf16 product",
        f"{worked:.1f} % +- {POINTS}",
        measured,
        abs(means["tensor"] - worked) <= POINTS,
    )
    means = copy["solo_run"]["means"]
    width = pynvml.nvmlDeviceGetMemoryBusWidth(handle)
    worked = 100 * copy["bytes"] / copy["solo_run"]["time_s"] / (means["memory_clock"] * 1e6 * 2 * width / 8)
    yield (
        "GPM DRAM % of a copy",
        f"{worked:.1f} % +- {POINTS}",
        f"{means['dram']:.1f} %",
        abs(means["dram"] - worked) <= POINTS,
    )
    means = spin["solo_run"]["means"]
    measured = f"busy {means['busy']:.0f} %, SM {means['sm']:.1f} %"
    yield "one thread that spins", "busy > 90 %, SM < 10 %", measured, means["busy"] > 90 and means["sm"] < 10
    means, clocks = launches["solo_run"]["means"], launches["clocks"]
    worked = 100 * clocks["device"] / clocks["wall"]
    measured = f"busy {means['busy']:.0f} %, SM {means['sm']:.1f} %"
    fits = abs(means["busy"] - worked) <= POINTS and means["sm"] < POINTS
    yield "a loop of launches", f"busy {worked:.0f} % +- {POINTS}, SM < {POINTS} %", measured, fits
    wall, device = launches["clocks"]["wall"], launches["clocks"]["device"]
    yield "launches on both clocks", "device < wall", f"{device * 1e6:.1f} us, {wall * 1e6:.1f} us", device < wall


def observer(folder):
    """What telemetry does to the times of a product."""
    out = folder / "observer.json"
    command = [*GPULAB, "--run", str(HERE / "busy.py"), "--device", "cuda:0", "--observer-effect", "--time", "40"]
    subprocess.run([*command, "--json", str(out)], check=False, stderr=subprocess.DEVNULL)
    effect = json.loads(out.read_text())
    measured = f"{effect['ratio']:.4f} [{effect['low']:.4f}, {effect['high']:.4f}], {effect['pairs']} pairs"
    yield "observer effect of telemetry", "inside 1 %", measured, 0.99 <= effect["low"] <= effect["high"] <= 1.01


def below_100_ms(folder):
    """What GPM returns where two samples are too close."""
    code = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
import pynvml, torch
from gpulab.telemetry.gpm import Gpm
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
    done = subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, text=True)
    print("GPM by distance of its samples:", done.stdout)
    far = [part for part in done.stdout.split("; ") if part.startswith(("200", "400"))]
    yield (
        "GPM below 100 ms",
        "printed above; 200 ms reads",
        "; ".join(far),
        len(far) == 2 and all("%" in part for part in far),
    )


def unprivileged(folder):
    """Another user reads the counters too."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import pynvml
pynvml.nvmlInit()
from gpulab.telemetry.gpm import Gpm
Gpm(pynvml.nvmlDeviceGetHandleByIndex(0)); print("GPM reads")
"""
    user = {"user": 65534} if os.geteuid() == 0 else {}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd="/", **user)
    output = done.stdout.strip() or done.stderr.strip().rpartition("\n")[2]
    yield f"unprivileged (uid {user.get('user', os.geteuid())})", "GPM reads", output[:44], done.returncode == 0


def do_bench(folder):
    """Ours, cold, on the device clock, against Triton's, in turn in one process."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import torch
from statistics import median
from triton.testing import do_bench
from gpulab import Work
from gpulab.worker.building.build import Build
from gpulab.worker.process.device import flusher, waiter
from gpulab.worker.timing.device_clock import DeviceClock
device = torch.device("cuda:0")
a = torch.randn(1 << 26, device=device)  # a copy: a product is held back by its power, and clocks would differ
out = torch.empty_like(a)
step = lambda: out.copy_(a)
clock = DeviceClock(waiter(device), flusher(device, 0))
build = Build(Work(step), 0.0, None)
ratios = []
for _ in range(12):
    clock_s = median(clock.block(build, 20).time_s for _ in range(20))
    do_bench_s = do_bench(step, return_mode="median") * 1e-3
    ratios.append(clock_s / do_bench_s)
print(f"{{median(ratios):.4f}} {{clock_s * 1e6:.1f}} {{do_bench_s * 1e6:.1f}}")
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-2000:])
    ratio, clock_us, do_bench_us = map(float, done.stdout.split()[-3:])
    measured = f"{ratio:.4f} ({clock_us} us, {do_bench_us} us)"
    yield "device clock / do_bench, cold, 12 pairs", "1 +- 0.02", measured, abs(ratio - 1) <= 0.02


LINES = {
    line.__name__: line
    for line in (
        doctor,
        ceilings,
        roofline,
        partition,
        library,
        counters,
        below_100_ms,
        unprivileged,
        phases,
        do_bench,
        observer,
        memory,
        lessons,
        tests,
    )
}

if __name__ == "__main__":
    sys.exit(main())
