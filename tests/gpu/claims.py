"""What the sources of the lessons claim, when a measurement bears a claim out, and what to think of it on a GPU."""


def reaches(variant, least, most=float("inf")):
    return lambda speedups: variant in speedups and least <= speedups[variant] <= most


CLAIMS = {
    "preallocation": (
        reaches("staged_once", 1.5),
        "torch's allocator keeps its blocks, so a fresh tensor costs the host microseconds and the device nothing",
    ),
    "double_buffering": (
        reaches("overlapped", 1.2),
        "copies in both directions and products overlap as far as the busiest of the three engines allows",
    ),
    "input_pipeline": (
        reaches("workers_n", 1.5),
        "a GPU that waits for one decoding process idles most of the time; workers give back what they decode",
    ),
    "memory_layout": (
        reaches("contiguous_once", 1.5),
        "a GPU reads a transposed matrix through its caches, so the layout matters less than on a CPU",
    ),
    "channels_last": (
        reaches("channels_last", 1.08),
        "cuDNN's fp16 kernels want channels last, and transpose what is not",
    ),
    "cache_footprint": (
        lambda speedups: max(speedups.values(), default=0.0) > 1.3,
        "once source and destination fit into L2 a copy runs above the roof of device memory",
    ),
    "cuda_graphs": (
        reaches("graphed", 1.5, 195),
        "a replay removes the launches of a step; end to end that is a few times, and never 195x",
    ),
    "batched_matmul": (
        reaches("bmm", 20),
        "forty launches become one, and the device is no longer waiting for the host",
    ),
    "sync_every_step": (
        reaches("deferred", 1.05),
        "each .item() drains the queue: the device idles for as long as the next launches take",
    ),
    "small_kernels": (
        reaches("compiled", 2.5),
        "four passes over memory become one: up to 4x less traffic where the tensor is larger than L2",
    ),
    "optimizer_step": (
        reaches("fused", 3.2),
        "a loop launches several kernels for each tensor; fused launches few for all of them",
    ),
    "batch_size": (
        lambda speedups: max(speedups.values(), default=0.0) >= 3,
        "throughput rises until the device is full, and a large device is not full at 512 rows of a small model",
    ),
    "precision": (
        reaches("bf16", 10),
        "tensor cores: fp32 does not use them, tf32, bf16, fp16 and fp8 do",
    ),
    "gradient_accumulation": (
        reaches("micro_16", 0, 1),
        "the same gradients from a sixteenth of the activations, for more time and never for less",
    ),
    "training_step": (
        reaches("all_together", 5),
        "fixes shorten the same waits, so what they give together is not their product",
    ),
}


def table(runs):
    """A line or two for each claim: what is claimed, what was measured, whether that bears it out, and a sentence."""
    for run in runs:
        if run["scenario"] not in CLAIMS or not run["comparisons"]:
            continue
        holds, sentence = CLAIMS[run["scenario"]]
        base = run["variants"][0]["name"]
        speedups = {
            comparison["variant"]: comparison["speedup"]
            for comparison in run["comparisons"]
            if comparison["against"] == base and comparison["speedup"]
        }
        measured = ", ".join(f"{name} {speedup:.3g}x" for name, speedup in speedups.items())
        verdict = "borne out" if holds(speedups) else "not here"
        yield f"{run['scenario']}: claimed {run['claim']}; measured {measured}: {verdict}.\n    {sentence}"
