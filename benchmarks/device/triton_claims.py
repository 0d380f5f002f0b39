"""What sources D and E claim of Triton and of attention, and which speedups bear it out."""

from claim import Claim
from judging import Bounds

TRITON = {
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
            "D's three operations are five passes of memory against two; five operations of "
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
            "E's 2 to 4x is of FlashAttention-2, which an H200 runs at a third of its peak",
        ),
        Claim(
            "in_triton",
            Bounds(2, 4),
            "E's 2 to 4x; this kernel is compiled to Hopper's matrix instructions, which flash "
            "here does not use",
        ),
    ),
}
