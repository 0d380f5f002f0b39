"""What the sources of the lessons claim, which speedups bear it out, and what to think of each on a GPU.

The bounds are the source's own numbers where it has some, with a tenth to each side where it names a single one. What
a source leaves open has a bound that the lesson's arithmetic gives: traffic, launches, engines.
"""

from dataclasses import dataclass

from judging import Bounds, Judgement, Row

BEST = "the best"
"""In place of a variant's name: the one with the largest speedup."""


@dataclass(frozen=True)
class Claim:
    """Of one variant against the baseline. `because` says why a GPU may be short of it, or go over it."""

    variant: str
    accepted: Bounds
    because: str


CLAIMS = {
    "preallocation": (
        Claim(
            "staged_once",
            Bounds(1.8, 2.2),
            "torch's allocator keeps its blocks, so a fresh tensor costs the host microseconds and the device nothing",
        ),
    ),
    "double_buffering": (
        Claim(
            "overlapped",
            Bounds(1.2, 3.0),
            "copies in both directions and products overlap as far as the busiest of the three engines allows",
        ),
    ),
    "input_pipeline": (
        Claim(
            "workers_n",
            Bounds(1 / 0.6, 1 / 0.2),
            "a GPU that waits for one decoding process idles for all but 20 to 60 %, which workers give back",
        ),
    ),
    "memory_layout": (
        Claim(
            "contiguous_once",
            Bounds(2, 10),
            "a GPU reads a transposed matrix through its caches, so the layout matters less than on a CPU",
        ),
    ),
    "channels_last": (
        Claim(
            "channels_last", Bounds(1.08, 1.35), "cuDNN's fp16 kernels want channels last, and transpose what is not"
        ),
    ),
    "cache_footprint": (
        Claim(
            BEST,
            Bounds(1.0, 4.0),
            "per byte of a copy; once source and destination fit into L2 it runs above the roof of device memory",
        ),
    ),
    "cuda_graphs": (
        Claim(
            "graphed",
            Bounds(2, 20),
            "50 to 70 % of a step that is all launches is 2 to 3.3x; 195x is of one kernel, and never end to end",
        ),
    ),
    "batched_matmul": (
        Claim("bmm", Bounds(20, 40), "forty launches become one, and the device no longer waits for the host"),
    ),
    "sync_every_step": (
        Claim(
            "deferred",
            Bounds(1.05, 5),
            "each .item() drains the queue: the device idles for as long as the next launches take",
        ),
    ),
    "small_kernels": (
        Claim(
            "compiled",
            Bounds(2.7, 4.5),
            "four passes over memory become one: up to 4x less traffic where the tensor is larger than L2",
        ),
    ),
    "optimizer_step": (
        Claim("foreach", Bounds(1.25, 20), "a loop launches several kernels for each tensor, foreach few for all"),
        Claim("fused", Bounds(3.2, 50), "one kernel for all tensors; the figures are a CPU's, a GPU's are larger"),
    ),
    "batch_size": (
        Claim(
            "batch_512",
            Bounds(10, 13),
            "throughput rises until the device is full: a small model on a large device has more to gain elsewhere",
        ),
    ),
    "precision": (
        Claim("bf16", Bounds(10, 100), "tensor cores: fp32 does not use them, tf32, bf16, fp16 and fp8 do"),
        Claim("fp8", Bounds(10, 100), "half the bits of bf16"),
    ),
    "gradient_accumulation": (
        Claim(
            "micro_16",
            Bounds(0.2, 1.0),
            "the same gradients from a sixteenth of the activations, for more time and never for less",
        ),
    ),
    "training_step": (
        Claim(
            "all_together",
            Bounds(5, 10),
            "fixes shorten the same waits, so what they give together is not their product",
        ),
    ),
}


def speedups_of(run):
    """Against the baseline, by variant; of a run as JSON."""
    base = run["variants"][0]["name"] if run["variants"] else None
    return {
        comparison["variant"]: comparison["speedup"]
        for comparison in run["comparisons"]
        if comparison["against"] == base and comparison["speedup"]
    }


def rows_of(run):
    """A row for each claim of the source that a run was made for: what it says, what is accepted, what was measured."""
    speedups = speedups_of(run)
    for claim in CLAIMS.get(run["scenario"], ()):
        variant = max(speedups, key=speedups.get, default=None) if claim.variant == BEST else claim.variant
        accepted = f"{claim.accepted.low:.3g}x to {claim.accepted.high:.3g}x"
        if variant not in speedups:
            yield Row(f"{run['scenario']} {claim.variant}", accepted, "no speedup", Judgement.NOT_RUN)
            continue
        measured = f"{speedups[variant]:.3g}x; source: {run['claim']}"
        yield Row(f"{run['scenario']} {variant}", accepted, measured, claim.accepted.judge(speedups[variant]))


def sentences(run):
    """Why it may be so, for each claim that is not within its bounds."""
    speedups = speedups_of(run)
    for claim in CLAIMS.get(run["scenario"], ()):
        variant = max(speedups, key=speedups.get, default=None) if claim.variant == BEST else claim.variant
        if variant in speedups and not claim.accepted.holds(speedups[variant]):
            yield f"{run['scenario']} {variant}: {claim.accepted.judge(speedups[variant])}. {claim.because}."
