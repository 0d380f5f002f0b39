"""What the lessons on goodput promise of a CPU, at full size: each line with its bound, and whether it holds.

python tests/benchmarks/goodput.py [sync] [small] [pipeline] [training]      # all without an argument; a quiet machine

Each measures for 40 s, so that a shared machine can tell 2 %.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run(name):
    """The result of one lesson by its command."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "gpulab", "--run", name, "--device", "cpu", "--time", "40", "--json", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())["runs"][0]


def told(one):
    return f"{one['variant']} {one['speedup']:.3f}x [{one['low']:.3f}, {one['high']:.3f}] {one['verdict']}"


def sync():
    (one,) = run("sync_every_step")["comparisons"]
    yield "sync_every_step", "same", told(one), one["verdict"] == "same"


def small():
    found = run("small_kernels")
    one = next(one for one in found["comparisons"] if one["variant"] == "compiled")
    first_s = next(each["first_step_s"] for each in found["variants"] if each["name"] == "compiled")
    yield "small_kernels", "> 2x", f"{told(one)}; first step, which compiles, {first_s:.1f} s", one["low"] > 2


def pipeline():
    """As long as the useful work of an item takes what it took, items per second follow goodput."""
    found = run("input_pipeline")
    shares = {one["name"]: one["goodput"] for one in found["variants"] if one["goodput"]}
    waits = [shares[name]["partition"]["data wait"] for name in ("workers_0", "workers_n")]
    yield "input_pipeline, data wait", "falls", f"{waits[0]:.1%} > {waits[1]:.1%}", waits[1] < waits[0]
    predicted = shares["workers_n"]["goodput"] / shares["workers_0"]["goodput"]
    one = next(one for one in found["comparisons"] if one["variant"] == "workers_n")
    off = one["speedup"] / predicted - 1
    line = f"goodput predicts {predicted:.3f}x, {told(one)}: {off:+.1%}"
    yield "input_pipeline, items per second", "within 10 %", line, abs(off) <= 0.1


def training():
    found = run("training_step")
    for one in found["comparisons"]:
        fine = one["verdict"] not in ("wrong", "invalid") and one["low"] is not None
        yield f"training_step, {one['variant']}", "an interval", told(one), fine
    of = found["together"]
    line = f"alone {of['promised']:.3f}x, together {of['speedup']:.3f}x [{of['low']:.3f}, {of['high']:.3f}]"
    yield "training_step, product and total", "faster", line, of["low"] > 1


LINES = {one.__name__: one for one in (sync, small, pipeline, training)}


def main():
    held = True
    for name in sys.argv[1:] or LINES:
        for what, expected, measured, holds in LINES[name]():
            print(f"{what:34} {expected:13} {measured}  {'yes' if holds else 'NO'}", flush=True)
            held = held and holds
    return not held


if __name__ == "__main__":
    sys.exit(main())
