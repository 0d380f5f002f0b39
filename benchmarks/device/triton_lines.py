"""The line of verify.py about Triton: verdicts, shares of ceilings, of cuBLAS, and of the best
attention there is.
"""

from judging import Bounds, within
from lesson_lines import copies_per_s, lessons

LESSONS = (
    "vector_add",
    "fused_softmax",
    "layernorm_gelu",
    "triton_matmul",
    "persistent_matmul",
    "attention",
)
OF_COPIES = {"vector_add": 0.9, "fused_softmax": 0.85}
"""Of the ceiling of copies, the kernel in Triton."""
OF_CUBLAS = 0.8
"""Of cuBLAS at 8192 x 8192 x 8192 in bf16, the best variant."""
OF_SDPA = 0.6
"""Of the fastest backend of torch, the kernel in Triton."""
BACKENDS = ("math", "flash", "cudnn")


def triton(place):
    """Every lesson in Triton."""
    return lessons(place, LESSONS, shares)


def shares(name, report):
    """What is asked of the kernels of one lesson."""
    variants = {variant["name"]: variant for variant in report["variants"]}
    times = {
        name: variant["time_s"]["median"] for name, variant in variants.items() if variant["time_s"]
    }
    if name in OF_COPIES:
        reached = (variants["in_triton"]["bytes_per_s"] or 0) / copies_per_s(report)
        yield within(
            f"{name}: Triton, of the ceiling of copies", Bounds(OF_COPIES[name], 1.1), reached, "%"
        )
    if "cublas" in times:
        library = times.pop("cublas")
        yield within(
            f"{name}: best, of cuBLAS in bf16",
            Bounds(OF_CUBLAS, 1.2),
            library / min(times.values()),
            "%",
        )
    if name == "attention":
        best = min(times[backend] for backend in BACKENDS if backend in times)
        reached = best / times["in_triton"]
        yield within(
            f"{name}: Triton, of the best backend of torch", Bounds(OF_SDPA, 1.5), reached, "%"
        )
