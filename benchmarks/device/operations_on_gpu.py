"""FLOPs and bytes of operations, derived from their shapes, against what ncu counts of their
kernels: within 10 %.

Products are judged by their FLOPs: how often they read an operand again is up to their tiles, and
the bytes are the least. What only moves bytes is judged by them, on operands that no cache holds.

    python benchmarks/device/operations_on_gpu.py

Prints a row as soon as it is known, and ends within two minutes.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import monotonic

import torch
from torch.nn import functional
from torch.profiler import profile

from gpulab.engine.build.lab import recorded
from gpulab.features.goodput.recorded_operations import operations
from gpulab.features.goodput.work import WorkOfCalls
from gpulab.traces.trace import WINDOW, read

WITHIN = 0.1
LIMIT_S = 110.0
MARK = "spin_kernel"
"""That of `torch.cuda._sleep`, between the operations."""
DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
FP32 = {
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 2,
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 1,
}
"""FLOPs of each instruction."""
TENSOR = {"sm__ops_path_tensor_src_bf16_dst_fp32.sum": 1}
MOVES, COMPUTES, MULTIPLIES = "bytes", "fp32 FLOPs", "bf16 FLOPs"


def full(*shape, dtype=torch.float32):
    return torch.randn(shape, device="cuda").to(dtype)


def bf16(*shape):
    return full(*shape, dtype=torch.bfloat16)


def of(function, *tensors):
    return lambda: function(*tensors)


CASES = {
    # in the order of their groups: what is judged, and how the step is made
    "add": (MOVES, lambda: of(torch.add, full(1 << 26), full(1 << 26))),
    "relu": (MOVES, lambda: of(torch.relu, full(1 << 26))),
    "gelu": (MOVES, lambda: of(functional.gelu, bf16(1 << 27))),
    "copy to bf16": (MOVES, lambda: of(torch.Tensor.bfloat16, full(1 << 26))),
    "sum of rows": (MOVES, lambda: of(lambda x: x.sum(1), full(1 << 14, 1 << 12))),
    "softmax": (MOVES, lambda: of(lambda x: x.softmax(1), full(1 << 14, 1 << 12))),
    "layer_norm": (
        MOVES,
        lambda: of(lambda x: functional.layer_norm(x, (1 << 12,)), full(1 << 14, 1 << 12)),
    ),
    "embedding": (
        MOVES,
        lambda: of(
            functional.embedding,
            torch.randperm(1_000_000, device="cuda")[:400_000],
            full(1_000_000, 128),
        ),
    ),
    "mm": (COMPUTES, lambda: of(torch.mm, full(2048, 2048), full(2048, 2048))),
    "baddbmm": (
        COMPUTES,
        lambda: of(torch.baddbmm, full(8, 1024, 1024), full(8, 1024, 1024), full(8, 1024, 1024)),
    ),
    "mm in bf16": (MULTIPLIES, lambda: of(torch.mm, bf16(4096, 4096), bf16(4096, 4096))),
    "addmm in bf16": (
        MULTIPLIES,
        lambda: of(torch.addmm, bf16(4096), bf16(4096, 4096), bf16(4096, 4096)),
    ),
    "bmm in bf16": (
        MULTIPLIES,
        lambda: of(torch.bmm, bf16(32, 1024, 1024), bf16(32, 1024, 1024)),
    ),
    "linear in bf16": (
        MULTIPLIES,
        lambda: of(functional.linear, bf16(64, 128, 2048), bf16(4096, 2048)),
    ),
    "conv2d in bf16": (
        MULTIPLIES,
        lambda: of(
            lambda x, w: functional.conv2d(x, w, padding=1),
            bf16(32, 256, 64, 64).to(memory_format=torch.channels_last),
            bf16(256, 256, 3, 3).to(memory_format=torch.channels_last),
        ),
    ),
    "attention in bf16": (
        MULTIPLIES,
        lambda: of(
            functional.scaled_dot_product_attention,
            bf16(8, 16, 2048, 128),
            bf16(8, 16, 2048, 128),
            bf16(8, 16, 2048, 128),
        ),
    ),
}
METRICS = {MOVES: dict.fromkeys(DRAM, 1), COMPUTES: FP32, MULTIPLIES: TENSOR}


def main():
    started = monotonic()
    if not torch.cuda.is_available():
        print("no CUDA device: nothing to count")
        return 2
    print(
        f"{'operation':18} {'judged by':12} {'derived':>10} {'counted':>10} {'ratio':>7}  on device"
    )
    agree = []
    for judged, metrics in METRICS.items():
        names = [name for name, (by, _) in CASES.items() if by == judged]
        derived = {name: derived_of(name) for name in names}
        counted, problem = counted_by_ncu(names, metrics, LIMIT_S - (monotonic() - started))
        for name in names:
            agree.append(show(name, judged, derived[name], counted.get(name)))
        if problem:
            print(f"  {judged}: {problem}", flush=True)
    known = [answer for answer in agree if answer is not None]
    print(
        f"{sum(known)} of {len(known)} within {WITHIN:.0%}, {len(agree) - len(known)} not counted"
    )
    print(f"{monotonic() - started:.0f} s")
    return 0 if known and all(known) else 1


def derived_of(name):
    """(FLOPs, bytes, seconds of the device) of one call, as a profile of it has them."""
    step = CASES[name][1]()
    step()
    torch.cuda.synchronize()
    with profile(record_shapes=True) as recording, recorded(WINDOW):
        step()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recording.export_chrome_trace(str(path))
        trace = read(json.loads(path.read_text()))
    rows = [row for row in operations(trace, work_of=WorkOfCalls()) if not row.on_device]
    del step
    torch.cuda.empty_cache()
    return (
        sum(row.flops or 0 for row in rows),
        sum(row.bytes or 0 for row in rows),
        sum(row.device_s or 0.0 for row in rows),
    )


def show(name, judged, derived, counted):
    """Print a row; whether they agree, None where nothing was counted."""
    flops, moved, device_s = derived
    expected = moved if judged == MOVES else flops
    rate = f"{expected / device_s / 1e12:.2f} T/s" if device_s else "no kernel of it"
    if not counted or not expected:
        print(f"{name:18} {judged:12} {expected:10.4g} {'n/a':>10} {'':7}  {rate}", flush=True)
        return None
    ratio = counted / expected
    agrees = abs(ratio - 1) <= WITHIN
    mark = "" if agrees else "  differs"
    print(
        f"{name:18} {judged:12} {expected:10.4g} {counted:10.4g} {ratio:7.3f}  {rate}{mark}",
        flush=True,
    )
    return agrees


def counted_by_ncu(names, metrics, left_s):
    """(what ncu counts of each operation, why not of all)."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return {}, "ncu is not installed"
    if left_s < 5:
        return {}, "no time is left"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        command = [ncu, "--profile-from-start", "off", "--clock-control", "none"]
        command += ["--cache-control", "none", "--metrics", ",".join(metrics)]
        command += ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        command += [sys.executable, __file__, "--steps", *names]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left_s)
        except subprocess.TimeoutExpired:
            return {}, "ncu did not end in time"
        text = log.read_text() if log.exists() else ""
    sums = sums_between_marks(text, metrics)
    if len(sums) != len(names):
        said = (text + done.stdout + done.stderr).strip().splitlines()
        problems = [line for line in said if "ERROR" in line or "rror:" in line] or said[-1:]
        return {}, f"{len(sums)} of {len(names)} were counted: {' '.join(problems)[:300]}"
    return dict(zip(names, sums, strict=True)), ""


def sums_between_marks(log, metrics):
    """Of ncu's page of raw values: names, units, then a line a kernel."""
    lines = [line for line in log.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        return []
    names, _, *rows = csv.reader(lines)
    sums = []
    for values in rows:
        entry = defaultdict(str, zip(names, values, strict=True))
        if MARK in entry["Kernel Name"]:
            sums.append(0.0)
        elif sums:
            for metric, factor in metrics.items():
                value = entry[metric].replace(",", "")
                sums[-1] += factor * float(value) if value else 0.0
    return sums


def steps(names):
    """What ncu watches: each operation once, after a mark."""
    runtime = torch.cuda.cudart()
    for name in names:
        step = CASES[name][1]()
        step()
        torch.cuda.synchronize()
        runtime.cudaProfilerStart()
        torch.cuda._sleep(1000)
        step()
        torch.cuda.synchronize()
        runtime.cudaProfilerStop()
        del step
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    chosen = sys.argv[1:]
    sys.exit(steps(chosen[1:]) if chosen[:1] == ["--steps"] else main())
