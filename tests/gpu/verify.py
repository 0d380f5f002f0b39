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
    given = sys.argv[1:]
    folder = Path(given[0] if given else "verify")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for line in [LINES[name] for name in given[1:]] or LINES.values():
        started = time.monotonic()
        try:
            found = list(line(folder))
        except Exception as error:
            found = [(line.__name__, "no exception", f"{type(error).__name__}: {error}"[:100], False)]
        print(f"[{line.__name__}: {time.monotonic() - started:.0f} s]", flush=True)
        rows += found
    print(f"\n{'what':44} {'expected':34} {'measured':44} holds")
    for what, expected, measured, holds in rows:
        print(f"{what:44} {expected:34} {measured:44} {'yes' if holds else 'NO'}")
    return not all(row[-1] for row in rows)


def tests(folder):
    """The tests that need a device."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider", str(HERE)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    print(done.stdout[-3000:])
    yield "pytest -m gpu", "passes", done.stdout.strip().rpartition("\n")[2][:44], done.returncode == 0


def marks(folder):
    """What a phase costs by events of the device."""
    command = [sys.executable, str(HERE.parent / "benchmarks" / "marks.py")]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    told = "; ".join(line.partition(": ")[2] for line in done.stdout.splitlines())
    yield "a phase in a step of 1 ms", "< 1 %", told[:44], done.returncode == 0


def doctor(folder):
    """What the doctor says of the machine."""
    done = subprocess.run([*GPULAB, "--doctor", "--json"], check=False, stdout=subprocess.PIPE, text=True)
    found = {one["name"]: one for one in json.loads(done.stdout)}
    for name in ("driver", "cuda:0"):
        yield f"--doctor: {name}", "ok", found[name]["found"][:44], found[name]["status"] == "ok"


def counters(folder):
    """What the hardware counts against what the work makes of the measured clock."""
    import pynvml
    import torch

    _, found = run(folder, HERE / "busy.py", "--time", "4")
    product, copy, launches, spin = found["variants"]
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(found["device"]["uuid"])
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    means = product["soak"]["means"]
    worked = 100 * product["flops"] / product["soak"]["time_s"] / (sms * FLOPS_PER_CLOCK * means["sm_clock"] * 1e6)
    measured = f"{means['tensor']:.1f} % at {means['sm_clock']:.0f} MHz"
    yield (
        "GPM tensor % of a bf16 product",
        f"{worked:.1f} % +- {POINTS}",
        measured,
        abs(means["tensor"] - worked) <= POINTS,
    )
    means = copy["soak"]["means"]
    width = pynvml.nvmlDeviceGetMemoryBusWidth(handle)
    worked = 100 * copy["bytes"] / copy["soak"]["time_s"] / (means["memory_clock"] * 1e6 * 2 * width / 8)
    yield (
        "GPM DRAM % of a copy",
        f"{worked:.1f} % +- {POINTS}",
        f"{means['dram']:.1f} %",
        abs(means["dram"] - worked) <= POINTS,
    )
    means = spin["soak"]["means"]
    measured = f"busy {means['busy']:.0f} %, SM {means['sm']:.1f} %"
    yield "one thread that spins", "busy > 90 %, SM < 10 %", measured, means["busy"] > 90 and means["sm"] < 10
    means, clocks = launches["soak"]["means"], launches["clocks"]
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
    found = json.loads(out.read_text())
    measured = f"{found['ratio']:.4f} [{found['low']:.4f}, {found['high']:.4f}], {found['pairs']} pairs"
    yield "observer effect of telemetry", "inside 1 %", measured, 0.99 <= found["low"] <= found["high"] <= 1.01


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
    found = gpm.sample()
    print(f"{{ms}} ms: " + (f"tensor {{found['tensor']:.0f}} %" if "tensor" in found else "nothing"), end="; ")
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, text=True)
    print("GPM by distance of its samples:", done.stdout)
    far = [part for part in done.stdout.split("; ") if part.startswith(("200", "400"))]
    yield (
        "GPM below 100 ms",
        "printed above; 200 ms reads",
        "; ".join(far),
        len(far) == 2 and all("%" in one for one in far),
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
    said = done.stdout.strip() or done.stderr.strip().rpartition("\n")[2]
    yield f"unprivileged (uid {user.get('user', os.geteuid())})", "GPM reads", said[:44], done.returncode == 0


def do_bench(folder):
    """Ours, cold, on the device clock, against Triton's, in turn in one process."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import torch
from statistics import median
from triton.testing import do_bench
from gpulab import Work
from gpulab.worker.build import Build
from gpulab.worker.device import flusher, waiter
from gpulab.worker.device_clock import DeviceClock
device = torch.device("cuda:0")
a = torch.randn(1 << 26, device=device)  # a copy: a product is held back by its power, and clocks would differ
out = torch.empty_like(a)
step = lambda: out.copy_(a)
clock = DeviceClock(waiter(device), flusher(device, 0))
build = Build(Work(step), 0.0, None)
ratios = []
for _ in range(12):
    ours = median(clock.block(build, 20).time_s for _ in range(20))
    theirs = do_bench(step, return_mode="median") * 1e-3
    ratios.append(ours / theirs)
print(f"{{median(ratios):.4f}} {{ours * 1e6:.1f}} {{theirs * 1e6:.1f}}")
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-2000:])
    ratio, ours, theirs = map(float, done.stdout.split()[-3:])
    yield (
        "device clock / do_bench, cold, 12 pairs",
        "1 +- 0.02",
        f"{ratio:.4f} ({ours} us, {theirs} us)",
        abs(ratio - 1) <= 0.02,
    )


LINES = {
    one.__name__: one
    for one in (
        doctor,
        ceilings,
        roofline,
        partition,
        library,
        counters,
        below_100_ms,
        unprivileged,
        marks,
        do_bench,
        observer,
        memory,
        lessons,
        tests,
    )
}

if __name__ == "__main__":
    sys.exit(main())
