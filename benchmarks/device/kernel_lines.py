"""Lines of verify.py about CUDA C++ lessons: verdicts, shares of ceilings, DRAM bytes, memory
errors, occupancy.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from judging import Bounds, row, within
from lesson_lines import copies_per_s, lessons
from one_step_each import MARK

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
KERNELS = [
    "coalescing",
    "vectorized_loads",
    "arithmetic_intensity",
    "roofline_walk",
    "loop_unrolling",
    "launch_bounds",
    "register_remedies",
    "restrict_pointers",
    "shared_memory_tiling",
    "shared_memory_prefetch",
    "divergence",
    "occupancy",
    "reduction",
    "batched_gemm_cublas",
    "memory_hierarchy",
]
MEMORY_BOUND = [
    "coalescing",
    "vectorized_loads",
    "arithmetic_intensity",
    "shared_memory_prefetch",
    "reduction",
    "vector_add",
    "fused_softmax",
    "layernorm_gelu",
]
TRITON = [
    "vector_add",
    "fused_softmax",
    "layernorm_gelu",
    "triton_matmul",
    "persistent_matmul",
    "attention",
]
OF_COPIES = {
    "vectorized_loads": 0.9,
    "reduction": 0.85,
    "vector_add": 0.9,
    "fused_softmax": 0.85,
}
"""At least, of the ceiling of copies: the kernel in Triton, else the best variant."""
OF_CUBLAS = {"shared_memory_tiling": 0.5, "triton_matmul": 0.8, "persistent_matmul": 0.8}
"""At least, the best variant: in fp32, and at 8192 x 8192 x 8192 in bf16."""
OF_SDPA = 0.6
"""Of the fastest backend of torch, attention in Triton."""
BACKENDS = ("math", "flash", "cudnn")
DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
APART = 0.1
READS_AGAIN = {("layernorm_gelu", "eager"): 0.15}
"""More than declared: torch's layer norm goes through a row twice, the second time partly from DRAM
(1.41 on H200).
"""
_LIMIT_S = 400


def kernels(place):
    """Every lesson in CUDA C++."""
    return lessons(place, KERNELS, shares)


def triton(place):
    """Every lesson in Triton."""
    return lessons(place, TRITON, shares)


def shares(name, report):
    """What is asked of the kernels of one lesson."""
    rates = {variant["name"]: variant["bytes_per_s"] or 0 for variant in report["variants"]}
    times = {
        variant["name"]: variant["time_s"]["value"]
        for variant in report["variants"]
        if variant["time_s"]
    }
    if name in OF_COPIES:
        reached = rates.get("in_triton", max(rates.values())) / copies_per_s(report)
        title = f"{name}: of the ceiling of copies"
        yield within(title, Bounds(OF_COPIES[name], 1.1), reached, "%")
    if name in OF_CUBLAS:
        reached = times.pop("cublas") / min(times.values())
        yield within(f"{name}: best, of cuBLAS", Bounds(OF_CUBLAS[name], 1.2), reached, "%")
    if name == "attention":
        best = min(times[backend] for backend in BACKENDS if backend in times)
        title = f"{name}: Triton, of the best backend of torch"
        yield within(title, Bounds(OF_SDPA, 1.5), best / times["in_triton"], "%")


def dram_bytes(place):
    """What ncu counts of a step's kernels against what the lesson declares."""
    ncu = shutil.which("ncu")
    if ncu is None:
        yield row("DRAM bytes by ncu", "ncu", "not installed", False)
        return
    log = place.folder / "dram.csv"
    watched = [ncu, "--profile-from-start", "off"]
    watched += ["--clock-control", "none", "--cache-control", "none"]
    watched += ["--metrics", ",".join(DRAM), "--csv", "--page", "raw", "--print-units", "base"]
    watched += ["--log-file", str(log)]
    done = steps_under(watched, MEMORY_BOUND, [])
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(steps) == 0 or not log.exists():
        yield row("DRAM bytes by ncu", "a log", done.stderr.strip()[-52:], False)
        return
    for step, moved in zip(steps, bytes_by_step(log.read_text()), strict=True):
        title = f"DRAM bytes, {step['scenario']} {step['variant']}"
        if step["bytes"] and moved:  # ncu sees kernels, and no copy by the driver
            more = READS_AGAIN.get((step["scenario"], step["variant"]), APART)
            yield within(title, Bounds(1 - APART, 1 + more), moved / step["bytes"], "%")


def bytes_by_step(log):
    """The sums of the kernels between marks, of ncu's page of raw values: names, units, then a line
    a kernel.
    """
    lines = [line for line in log.splitlines() if line.startswith('"')]
    names, _, *rows = csv.reader(lines)
    sums = []
    for values in rows:
        entry = dict(zip(names, values, strict=True))
        if MARK in entry["Kernel Name"]:
            sums.append(0.0)
        else:
            sums[-1] += sum(float(entry[metric].replace(",", "")) for metric in DRAM)
    return sums


def sanitizer(place):
    """Memory errors and races in shared memory, on sizes of a smoke run."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        yield row("compute-sanitizer", "there", "not installed", False)
        return
    for check in ("memcheck", "racecheck"):
        done = steps_under([tool, "--tool", check, "--error-exitcode", "9"], KERNELS, ["--smoke"])
        said = [line for line in done.stdout.splitlines() if line.startswith("=========")]
        print(*said[-40:], done.stderr[-2000:] if done.returncode else "", sep="\n")
        yield row(
            f"compute-sanitizer {check}",
            "no errors",
            (said or ["nothing"])[-1][10:62],
            done.returncode == 0,
        )


def occupancy(place):
    """What is worked out of registers and shared memory against what the driver says of the loaded
    kernel.
    """
    done = steps_under([], KERNELS, ["--smoke"], HERE / "driver_occupancy.py")
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            said = f"{entry['blocks']} blocks, the driver {entry['driver']}"
            yield row(
                f"occupancy of {entry['kernel']}"[:52],
                "the driver's",
                said,
                entry["blocks"] == entry["driver"],
            )
    if done.returncode:
        yield row("occupancy", "an end", done.stderr.strip()[-52:], False)


def steps_under(command, names, options, script=HERE / "one_step_each.py"):
    """One step of each variant of these lessons, watched by a tool."""
    path = os.pathsep.join(filter(None, (str(ROOT), str(HERE), os.environ.get("PYTHONPATH"))))
    files = [str(ROOT / "scenarios" / f"{name}.py") for name in names]
    return subprocess.run(
        [*command, sys.executable, str(script), *options, *files],
        check=False,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        env={**os.environ, "PYTHONPATH": path},
    )
