"""Bytes of device memory that five kernels move: as declared, by PM sampling, by ncu, and by GPM.

python benchmarks/device/counters.py

GPULAB_COUNTERS_PYTHON names a Python with cupti-python, or a folder of its packages; ncu is on PATH.
What is not there has no column. A product reads again, and attention out of the cache: only the first
two move what they declare, and all columns of a row should agree.
"""

import csv
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack

import torch
import torch.nn.functional as F  # noqa: N812

from gpulab.features.counters_in_time.after import NoCountersError, Sampler
from gpulab.features.counters_in_time.rows import SETS, columns

METRICS = ["dram__bytes_read.sum", "dram__bytes_write.sum"]
CALLS, GPM_S = 5, 2.0


def works():
    """(what runs, the bytes that it declares) by name; made when it is asked for."""

    def made(*shape, dtype=torch.float32):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    def copy():
        source = made(1 << 28)
        target = torch.empty_like(source)
        # copy_ would be no kernel, which ncu does not see
        return lambda: torch.mul(source, 1, out=target), 2 * source.nbytes

    def softmax():
        data = made(16384, 8192)
        return lambda: torch.softmax(data, 1), 2 * data.nbytes

    def product(dtype):
        data = made(8192, 8192, dtype=dtype)
        out = torch.empty_like(data)
        return lambda: torch.mm(data, data, out=out), 3 * data.nbytes

    def attention():
        data = [made(4, 32, 4096, 128, dtype=torch.bfloat16) for _ in range(3)]
        return lambda: F.scaled_dot_product_attention(*data), 4 * data[0].nbytes

    return {
        "copy": copy,
        "softmax": softmax,
        "fp32 product": lambda: product(torch.float32),
        "bf16 product": lambda: product(torch.bfloat16),
        "attention": attention,
    }


def by_sampling(sampler, step):
    sampler.asked(do="start", metrics=METRICS)
    begin = time.time_ns()
    for _ in range(CALLS):
        step()
    torch.cuda.synchronize()
    took = time.time_ns() - begin
    samples = columns(METRICS, sampler.asked(do="stop"), begin, took)
    return sum(sum(samples[metric]) for metric in METRICS) / CALLS


def by_ncu(name):
    """Bytes of one call, which ncu runs again for each pass."""
    command = ["ncu", "--profile-from-start", "off", "--cache-control", "none", "--csv"]
    command += ["--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS)]
    command += [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = [row for row in csv.DictReader(lines[start:]) if row["ID"]]
    return sum(float(row[each].replace(",", "")) for row in rows for each in METRICS) or None


def by_gpm(gpm, step, bytes_per_s):
    """Bytes of a call from the share of the memory bandwidth over some seconds of calls."""
    gpm.sample()
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < GPM_S:
        for _ in range(CALLS):
            step()
        torch.cuda.synchronize()
        calls += CALLS
    share = gpm.sample().get("dram")
    took = time.perf_counter() - began
    return None if share is None else share / 100 * bytes_per_s * took / calls


def opened_gpm():
    import pynvml

    from gpulab.features.telemetry.gpu import Gpm

    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        clock = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)
        width = pynvml.nvmlDeviceGetMemoryBusWidth(handle)
        return Gpm(handle), 2 * clock * 1e6 * width / 8
    except pynvml.NVMLError as error:
        print(f"no GPM: {error}")
        return None, 0.0


def main():
    if "--one" in sys.argv:
        step, _ = works()[sys.argv[-1]]()
        step()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        step()
        torch.cuda.synchronize()
        return
    print(torch.cuda.get_device_name(0), f"torch {torch.__version__}")
    with ExitStack() as processes:
        sampler = None
        try:
            opened = Sampler(processes, "cuda:0", 20_000)
            opened.open()
            sampler = opened
            print(f"sampled by cupti-python {sampler.package}: {sampler.sets} of {SETS}")
            ratios, idle = sampler.checked()
            print("of a copy:", {name: round(ratio, 3) for name, ratio in ratios.items()})
            print("B/s of an idle link:", {name: round(rate) for name, rate in idle.items()})
        except NoCountersError as error:
            print(f"no PM sampling: {error.reason}")
        gpm, bytes_per_s = opened_gpm()
        print(
            f"{'over what is declared':24}{'declared':>12}{'PM sampling':>13}{'ncu':>8}{'GPM':>8}"
        )
        for name, make in works().items():
            step, declared = make()
            for _ in range(3):
                step()
            torch.cuda.synchronize()
            counted = [by_sampling(sampler, step) if sampler else None]
            counted.append(by_ncu(name) if shutil.which("ncu") else None)
            counted.append(by_gpm(gpm, step, bytes_per_s) if gpm else None)
            cells = ["n/a" if each is None else f"{each / declared:.3f}x" for each in counted]
            print(f"{name:24}{declared:12,}{cells[0]:>13}{cells[1]:>8}{cells[2]:>8}", flush=True)
            del step
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
