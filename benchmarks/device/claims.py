"""What the sources of the lessons claim, which speedups bear it out, and what to think of each on a
GPU.

The bounds are the source's own numbers where it has some, with a tenth to each side where it names
a single one. What a source leaves open has a bound that the lesson's arithmetic gives: traffic,
launches, engines.
"""

from dataclasses import dataclass

from judging import Bounds, Judgement, Row

BEST = "the best"
"""In place of a variant's name: the one with the largest speedup."""


@dataclass(frozen=True)
class Claim:
    """Of one variant against the baseline. `because` says why a GPU may be short of it, or go over
    it.
    """

    variant: str
    accepted: Bounds
    because: str

    def variant_of(self, speedups):
        """Whose speedup it is about."""
        if self.variant == BEST:
            return max(speedups, key=speedups.get, default=None)
        return self.variant


CLAIMS = {
    "preallocation": (
        Claim(
            "staged_once",
            Bounds(1.8, 2.2),
            "torch's allocator keeps its blocks, so a fresh tensor costs the host little and the "
            "device nothing; what the sources removed was the first step's",
        ),
    ),
    "double_buffering": (
        Claim(
            "overlapped",
            Bounds(1.2, 3.0),
            "copies in both directions and products overlap as far as the busiest of the three "
            "engines allows",
        ),
    ),
    "input_pipeline": (
        Claim(
            "workers_n",
            Bounds(1 / 0.6, 1 / 0.4),
            "the naive loop of the performance basics keeps the GPU at 40 to 60 %, and workers give the rest back, as far "
            "as there are cores",
        ),
    ),
    "memory_layout": (
        Claim(
            "contiguous_once",
            Bounds(2, 5),
            "no source says how much; a warp that reads across the rows moves 8 times the "
            "sectors out of the L2, which keeps what is left of them, and a transposing copy "
            "takes an H100 3.1 times what its bytes need",
        ),
    ),
    "channels_last": (
        Claim(
            "channels_last",
            Bounds(1.3, 3.0),
            "cuDNN's fp16 kernels want channels last, and reorder what is not; the bounds are "
            "our own, around 2.1x",
        ),
    ),
    "cache_footprint": (
        Claim(
            BEST,
            Bounds(1.05, 4.0),
            "once a chunk fits into L2, seven of its eight passes do not come from memory, and "
            "L2 is the roof",
        ),
    ),
    "cuda_graphs": (
        Claim(
            "graphed",
            Bounds(1.1, 10),
            "the quick-start guide's 1.1 to 2x is end to end, performance basics' 50 to 70 % of a step that is all launches is 2 to "
            "3.3x; a small model on a slow host waits for more than performance basics says (6.1x on an H200 that "
            "worked for 13 % of the eager step), and the quick-start guide's 195x would need a device that is idle "
            "for 99.5 % of a step",
        ),
    ),
    "batched_matmul": (
        Claim(
            "bmm",
            Bounds(20, 40),
            "forty launches are one, and forty products fill a device that one cannot",
        ),
    ),
    "sync_every_step": (
        Claim(
            "deferred",
            Bounds(1.05, 5),
            "each .item() drains the queue: the device idles while the next short kernels are "
            "launched",
        ),
    ),
    "small_kernels": (
        Claim(
            "compiled",
            Bounds(2.7, 32),
            "the Triton guide's 3x is traffic, of another chain; here 32 launches become one, and Python calls "
            "the compiled code",
        ),
    ),
    "optimizer_step": (
        Claim(
            "foreach",
            Bounds(1.5, 8),
            "a loop launches several kernels for each tensor, foreach few for all",
        ),
        Claim(
            "fused",
            Bounds(4, 26),
            "one pass over all tensors; the bounds are our own, of a CPU and of an H200",
        ),
    ),
    "batch_size": (
        Claim(
            "batch_512",
            Bounds(10, 13),
            "11.5x are performance basics' 87 to 1000 MFLOPs (the quick-start guide: 8.5x at 256); a sixteenth of the reads of the "
            "weights is at most 16x, and from about 250 rows on the arithmetic of the tensor "
            "cores is the limit",
        ),
    ),
    "precision": (
        Claim(
            "bf16",
            Bounds(10, 100),
            "tensor cores: fp32 does not use them, tf32, bf16, fp16 and fp8 do; GeForce cards "
            "gain about 2x",
        ),
        Claim("fp8", Bounds(10, 100), "half the bits of bf16; the power limit takes some of it"),
    ),
    "gradient_accumulation": (
        Claim(
            "micro_2",
            Bounds(1.0, 5.0),
            "of micro_16: the same gradients in fewer pieces, with eight times the activations "
            "and never more time",
        ),
    ),
    "training_step": (
        Claim(
            "all_together",
            Bounds(5, 12),
            "fixes shorten the same waits, so what they give together is not their product; "
            "bf16 and a larger batch compound where fp32 arithmetic is most of the step",
        ),
    ),
    "pinned_memory": (
        Claim(
            "pinned",
            Bounds(2, 6),
            "A, B, C; more where one core copies pageable memory at less than 10 GB/s",
        ),
        Claim(
            "pin_per_call",
            Bounds(0.2, 1.0),
            "pinning on every call costs more than the staging that it saves",
        ),
    ),
    "utilization": (
        Claim(
            "full_grid",
            Bounds(30, 150),
            "no source says how much: one block is a 132nd of an H100, and all of them meet the "
            "memory's roof",
        ),
    ),
    "graph_breaks": (
        Claim(
            "where",
            Bounds(1.1, 30),
            "one graph, and no host in it; no source says how much it gains",
        ),
    ),
    "dynamic_shapes": (
        Claim(
            "graphed",
            Bounds(1.0, 10),
            "replayed graphs of a few lengths; no source says how much they gain",
        ),
    ),
    "autocast_training": (
        Claim(
            "bf16",
            Bounds(1.3, 10),
            "products on tensor cores in half the bytes; the update stays in fp32",
        ),
    ),
    "recomputation": (
        Claim(
            "every_block",
            Bounds(0.7, 0.95),
            "a second forward pass is a quarter to a third of the work of a step",
        ),
    ),
    "latency_throughput": (
        Claim(
            "full_batches",
            Bounds(3, 16),
            "batches of 16 read the weights once: at most 16x, and launches too",
        ),
    ),
    "compile_workloads": (
        Claim(
            "compiled",
            Bounds(1.17, 1.65),
            "the torch.compile tutorial's 1.3 to 1.5x of a transformer's step",
        ),
    ),
    "compile_modes": (
        Claim(
            "reduce_overhead",
            Bounds(1.0, 10),
            "E says that it compiles fastest, which is not a speedup of a step",
        ),
    ),
    "matmul_epilogue": (
        Claim(
            "compiled",
            Bounds(1.0, 2.0),
            "three passes over the result become one; the product is the library's",
        ),
    ),
    "jax_jit": (
        Claim("jitted", Bounds(2, 50), "one program in place of hundreds of dispatched operations"),
    ),
    "coalescing": (
        Claim(
            "coalesced",
            Bounds(3, 8),
            "the sources' kernels differed in work by 32x; a stride of 32 moves 8 times the "
            "sectors out of an L2 of twice the memory's bandwidth, and looks up 32 lines a "
            "request: about 4 to 6x; the bounds are our own",
        ),
    ),
    "vectorized_loads": (
        Claim(
            "one_float4",
            Bounds(1.15, 2.2),
            "B has 1.28x, A 122 to 242 GB/s; a full grid of single floats has too few bytes "
            "under way on an H200 (63 % of the roof), and enough on a device with less bandwidth "
            "for its threads",
        ),
    ),
    "restrict_pointers": (
        Claim(
            "restricted",
            Bounds(1.1, 2.5),
            "B names no factor; full SMs with one row in flight for each thread come to two "
            "thirds or more of the bandwidth, and with all rows in flight to all of it",
        ),
    ),
    "arithmetic_intensity": (
        Claim(
            "fused",
            Bounds(3.1, 4.5),
            "performance basics' 3.4x is of five different functions; here 12 bytes an element in place of 44 "
            "are 3.7x, and 1.31x on top of that on an H200, where single floats do not saturate "
            "the memory and float4 does",
        ),
    ),
    "occupancy": (
        Claim(
            "balanced",
            Bounds(2.0, 4.2),
            "D names no factor; on an H200 2,048 threads for each SM in place of 512, each with "
            "one load in flight",
        ),
        Claim(
            "starved_8_loads",
            Bounds(2.5, 8.0),
            "eight loads for each of 512 threads, until the memory is the limit: occupancy is "
            "not the only way",
        ),
    ),
    "launch_bounds": (
        Claim(
            "four_blocks",
            Bounds(1.2, 2.0),
            "no source says how much; twice the threads have at most twice the loads in flight, "
            "less a few spills",
        ),
        Claim(
            "eight_blocks",
            Bounds(0.1, 1.1),
            "the quick-start guide's (256, 8) leaves 32 registers for 36 sums on an SM of 2,048 threads: spills in "
            "every pass of the loop; an SM of 1,536 threads ignores it",
        ),
    ),
    "loop_unrolling": (
        Claim(
            "unrolled",
            Bounds(2, 8),
            "A and D name no factor; with one warp for each scheduler a counter, a comparison "
            "and a branch for each FMA cost several times its 4 cycles, and 32 FMAs share them",
        ),
        Claim(
            "four_chains",
            Bounds(5, 32),
            "four chains fill the 4 cycles of an FMA: up to 4x over unrolling",
        ),
    ),
    "divergence": (
        Claim(
            "predicated",
            Bounds(0.9, 1.1),
            "D names no factor; on random data nearly every warp computes both sides with or "
            "without a branch",
        ),
        Claim(
            "sorted_branch",
            Bounds(2.5, 4.0),
            "a quarter of the warps computes, and all read and write",
        ),
        Claim(
            "sorted_predicated",
            Bounds(0.9, 1.1),
            "both sides are computed whatever the order: a select, as tl.where, loses to the "
            "branch on sorted data",
        ),
    ),
    "reduction": (
        Claim(
            "shared_tree",
            Bounds(5, 200),
            "no source says how much; 8 million additions to one address, one in about 3.5 "
            "cycles on an H200, against one read of the array",
        ),
        Claim("vectorized", Bounds(5, 200), "the same against one read at the memory's roof"),
    ),
    "shared_memory_tiling": (
        Claim(
            "tiled",
            Bounds(1.0, 2.5),
            "no source says how much; L1 and shared memory serve the same bytes in a clock, so "
            "what tiles gain over a cached kernel are misses and 5 loads in place of 8 for 4 FMAs",
        ),
        Claim(
            "blocked",
            Bounds(4, 16),
            "a load of 16 bytes for 16 FMAs in place of 2 loads for each: loads no longer bound "
            "it, and from an eighth of the peak at most it comes to half or more",
        ),
    ),
    "shared_memory_prefetch": (
        Claim(
            "staged",
            Bounds(1.116, 1.364),
            "the quick-start guide's 1.24x; what is used once still comes from device memory once, and direct is "
            "near that roof already",
        ),
        Claim(
            "async_copy",
            Bounds(0.9, 1.25),
            "two tiles under way gain only where one is too few, and 8 blocks for each SM have "
            "enough",
        ),
    ),
    "batched_gemm_cublas": (
        Claim(
            "gemm_batched",
            Bounds(10, 40),
            "performance basics' 31x, with outputs of zeros; forty products fill a device that one cannot, and "
            "forty are the most",
        ),
        Claim("gemm_strided_batched", Bounds(10, 40), "the same kernel without arrays of pointers"),
    ),
    "vector_add": (
        Claim(
            "in_triton",
            Bounds(0.9, 0.95),
            "E has Triton at 90 to 95 % of CUDA; at the roof of memory there is nothing to lose, "
            "and it is as fast as torch and as CUDA C++ with loads of 16 bytes, and faster than "
            "one float a thread",
        ),
    ),
    "fused_softmax": (
        Claim(
            "in_triton",
            Bounds(2.7, 3.3),
            "the Triton guide's three operations are five passes of memory against two; five operations of "
            "torch are eight, so one kernel gains four times by traffic, and more where theirs "
            "are below the roof",
        ),
    ),
    "layernorm_gelu": (
        Claim(
            "in_triton",
            Bounds(1.6, 2.2),
            "C names no factor; two passes of memory in place of four are 2x",
        ),
    ),
    "triton_matmul": (
        Claim(
            "tuned",
            Bounds(3, 12),
            "D names no factor; tiles of 128 x 256 load a fifth of what tiles of 32 x 32 do, and "
            "only they are computed by warp groups",
        ),
        Claim(
            "grouped",
            Bounds(3, 12),
            "an order of tiles that loads less through the L2 gains a few percent more",
        ),
    ),
    "persistent_matmul": (
        Claim(
            "by_tma",
            Bounds(1.0, 1.3),
            "D names no factor; what starts and ends a tile is a small part of it, and the power "
            "cap levels the rest",
        ),
    ),
    "attention": (
        Claim(
            "flash",
            Bounds(2, 4),
            "the torch.compile tutorial's 2 to 4x is of FlashAttention-2, which an H200 runs at a third of its peak",
        ),
        Claim(
            "in_triton",
            Bounds(2, 4),
            "the torch.compile tutorial's 2 to 4x; this kernel is compiled to Hopper's matrix instructions, which flash "
            "here does not use",
        ),
    ),
    "gradient_buckets": (
        Claim(
            "flat",
            Bounds(1.05, 3.0),
            "96 all-reduces of latency are one; the backward and the 202 MB are the same, so a "
            "slow link or a fast launch leaves little of it",
        ),
        Claim(
            "overlapped",
            Bounds(1.1, 4.0),
            "all but the last bucket is behind the backward, where NCCL's kernels leave it SMs",
        ),
    ),
    "ddp_overlap": (
        Claim(
            "overlapped",
            Bounds(1.05, 1.5),
            "the paper's gains are of models whose transfer is nearly as long as their backward; a "
            "faster link leaves less to hide, a slower one more than the backward can",
        ),
        Claim(
            "accumulated",
            Bounds(1.05, 3.5),
            "a quarter of the bytes, and of those only the last bucket exposed: at most four times "
            "as fast where the link is nearly all",
        ),
    ),
    "pipeline_handoff": (
        Claim(
            "double_buffered",
            Bounds(1.05, 1.7),
            "33.6 MB and 34 GFLOP a batch: 1.2x over NVLink, 1.5x over PCIe, where sends take no "
            "SMs from the products",
        ),
    ),
    "late_rank": (
        Claim(
            "one_late",
            Bounds(0.6, 0.75),
            "the last rank has 1.5 times the rows, and everybody waits for it; more where the "
            "all-reduce is a large part of the step",
        ),
        Claim("balanced", Bounds(0.95, 1.05), "as many rows on each rank as even has"),
    ),
    "collectives": (
        Claim(
            "one_shot",
            Bounds(0.7, 3.0),
            "the playbook says faster for small messages; 1 MiB is near where NCCL catches up",
        ),
        Claim("two_shot", Bounds(0.7, 3.0), "as one_shot: with two ranks both move the same bytes"),
    ),
    "hybrid_sharding": (
        Claim(
            "full_shard",
            Bounds(1 / 1.5, 1.05),
            "ZeRO's 1.5 times the communication is all of the loss where nothing computes, and "
            "less with the products, which stay as they are",
        ),
    ),
    "kv_cache": (
        Claim(
            "remote_pages",
            Bounds(0.05, 0.5),
            "pages come over a link that is 5 to 50 times slower than memory; the bounds are our own",
        ),
        Claim(
            "remote_attention",
            Bounds(0.5, 1.3),
            "what is sent is small, and two collectives a layer cost their latency; the bounds are "
            "our own",
        ),
    ),
    "model_pool": (
        Claim(
            "pooled",
            Bounds(0.05, 1.0),
            "on GPUs the pool is behind PCIe and every request copies, where on_demand copies some "
            "over NVLink; the bounds are our own",
        ),
        Claim(
            "replicated",
            Bounds(1.5, 40),
            "it copies nothing, and reads weights at the speed of memory; the bounds are our own",
        ),
    ),
    "speculative_decoding": (
        Claim(
            "draft_beside",
            Bounds(1.5, 3.5),
            "it follows from the acceptance, which the lesson reports, and from launches, which the "
            "draft has as many of for each layer as the target",
        ),
        Claim(
            "draft_remote",
            Bounds(1.0, 3.5),
            "each pass waits for two messages; the bounds are our own",
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
    """A row for each claim of the source that a run was made for: what it says, what is accepted,
    what was measured.
    """
    speedups = speedups_of(run)
    for claim in CLAIMS.get(run["scenario"], ()):
        variant = claim.variant_of(speedups)
        accepted = f"{claim.accepted.low:.3g}x to {claim.accepted.high:.3g}x"
        if variant not in speedups:
            yield Row(
                f"{run['scenario']} {claim.variant}", accepted, "no speedup", Judgement.NOT_RUN
            )
            continue
        measured = f"{speedups[variant]:.3g}x; source: {run['claim']}"
        yield Row(
            f"{run['scenario']} {variant}",
            accepted,
            measured,
            claim.accepted.judge(speedups[variant]),
        )


def sentences(run):
    """Why it may be so, for each claim that is not within its bounds."""
    speedups = speedups_of(run)
    for claim in CLAIMS.get(run["scenario"], ()):
        variant = claim.variant_of(speedups)
        if variant in speedups and not claim.accepted.holds(speedups[variant]):
            yield (
                f"{run['scenario']} {variant}: {claim.accepted.judge(speedups[variant])}. "
                f"{claim.because}."
            )
