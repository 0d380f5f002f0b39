"""Lines of verify.py about several GPUs: the lessons of ranks, and collectives by size beside the
ceilings of their link.
"""

import json
import subprocess

from commands import GPULAB
from judging import Bounds, Judgement, Row, row, within
from lesson_lines import lesson_rows, run

LESSONS = (
    "gradient_buckets",
    "ddp_overlap",
    "pipeline_handoff",
    "hybrid_sharding",
    "kv_cache",
    "model_pool",
    "speculative_decoding",
    "late_rank",
)
PARTS = 4
SIZES = {
    "1 KiB": 1,
    "64 KiB": 64,
    "1 MiB": 1 << 10,
    "16 MiB": 16 << 10,
    "256 MiB": 256 << 10,
    "1 GiB": 1 << 20,
}
"""Of tensors, as `--calibrate --ranks` names them, and in KiB."""
_APART = Bounds(0.5, 1.3)
"""A lesson's step copies its input first, which takes as long to start as a small reduction."""


def rank_lessons(place, part):
    """Default runs: a verdict, none wrong, and the claims of their sources."""
    if too_few := list(_too_few_gpus("the lessons of ranks")):
        yield from too_few
        return
    for name in LESSONS[part::PARTS]:
        yield from lesson_rows(name, *run(place, name))


def collectives(place):
    """Bus bandwidth of each way to reduce, by size: the library's beside its calibration, and which
    is the fastest.
    """
    if too_few := list(_too_few_gpus("collectives")):
        yield from too_few
        return
    from torch.distributed import _symmetric_memory as symmetric

    memory = "NVSHMEM" if symmetric.is_nvshmem_available() else "CUDA"
    ceilings = _bus_bandwidths(place)
    flags = ("--quick", "--profile", "off", "--set", f"memory={memory}")
    for size, kib in SIZES.items():
        code, report = run(place, "collectives", *flags, "--set", f"kib={kib}")
        if not report:
            yield row(f"collectives {size}", "a result", f"exit code {code}", False)
            continue
        rates = {
            variant["name"]: variant["bytes"] / variant["time_s"]["value"]
            for variant in report["variants"]
            if variant["time_s"]
        }
        yield within(
            f"all_reduce of {size} over its calibration",
            _APART,
            rates["all_reduce"] / ceilings[size],
        )
        best = max(rates, key=rates.get)
        line = ", ".join(f"{name} {rate / 1e9:.3g}" for name, rate in rates.items())
        yield row(f"collectives {size}, GB/s, {memory}", f"best: {best}", line, bool(rates))


def _too_few_gpus(title):
    """A row where the machine has not two of them."""
    import torch

    if torch.cuda.device_count() < 2:
        yield Row(title, "two GPUs", f"{torch.cuda.device_count()}", Judgement.NOT_RUN)


def _bus_bandwidths(place):
    out = place.folder / "links.json"
    command = [*GPULAB, "--calibrate", "--ranks", "2", "--device", place.device, "--json", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    entries = json.loads(out.read_text())["ceilings"]
    measured = [entry for entry in entries if entry["roof"] == "all-reduce" and entry["best"]]
    return {entry["kind"].partition("ranks ")[2]: entry["best"] for entry in measured}
