"""The ceilings of a CPU against others' figures for the same work, in turn, as medians of the
ratios of pairs.

    # both without an argument; a C compiler for the first
    python benchmarks/ceilings.py [triad] [gemm]
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import torch

from gpulab.core.payloads import MATRIX, MEMORY
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.processes.device import open_device
from gpulab.features.roofline.ceilings import ceiling_from
from gpulab.features.roofline.probes import plan
from gpulab.report.sentences import sentence

PAIRS, BLOCKS = 15, 10
TRIAD = """
#include <time.h>
double triad(float *restrict a, const float *restrict b, const float *restrict c, float s, long n) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i];
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec);
}
"""


def probe_of(roof, kind):
    probes = plan(*open_device("cpu", 1))
    return next(
        planned.make() for planned in probes if (planned.roof, planned.kind) == (roof, kind)
    )


def ours(roof, probe):
    clock, build = WallClock(None), Build(probe.work, 0.0, None)
    steps, _ = clock.steps_per_block(build)
    times = [clock.block(build, steps).time_s for _ in range(BLOCKS)]
    return ceiling_from(roof, "", probe.amount, times)


def triad():
    """Best of ten against best of ten of a loop in C, compiled for this very CPU, on arrays of the
    same size.

    Fresh arrays for each pair: where they lie in memory makes 10 % of difference to either.
    """

    amount = probe_of(MEMORY, "triad").amount
    count = amount // 12
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "triad.so"
        source = library.with_suffix(".c")
        source.write_text(TRIAD)
        compiler = shutil.which("gcc") or shutil.which("cc")
        subprocess.run(
            [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source],
            check=True,
        )
        function = ctypes.CDLL(str(library)).triad
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_float, ctypes.c_long]

    def theirs():
        a, b, c = (torch.rand(count) for _ in range(3))
        times = [
            function(a.data_ptr(), b.data_ptr(), c.data_ptr(), 3.0, count) for _ in range(BLOCKS)
        ]
        return amount / min(times)

    pairs = [
        (ours(MEMORY, probe_of(MEMORY, "triad")).best / 1e9, theirs() / 1e9) for _ in range(PAIRS)
    ]
    report("triad, GB/s, ours / C", pairs)


def gemm():
    """The median of our blocks against torch.utils.benchmark on the same product."""
    from torch.utils.benchmark import Timer

    for kind in ("fp32", "fp64", "bf16"):
        probe = probe_of(MATRIX, kind)
        timer = Timer("step()", globals={"step": probe.work.step}, num_threads=1)
        steps = max(1, int(0.02 / ours(MATRIX, probe).median * probe.amount))

        def theirs(timer=timer, steps=steps, amount=probe.amount):
            return amount / median(timer.timeit(steps).times[0] for _ in range(BLOCKS))

        pairs = [(ours(MATRIX, probe).median / 1e9, theirs() / 1e9) for _ in range(PAIRS)]
        report(
            f"gemm {kind} ({sentence(probe.method)}), GFLOP/s, ours / torch.utils.benchmark", pairs
        )


def report(title, pairs):
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    quartiles = f"quartiles {ratios[len(ratios) // 4]:.3f} to {ratios[3 * len(ratios) // 4]:.3f}"
    print(
        f"{title}: {ours:.1f} / {theirs:.1f}, ratio {median(ratios):.3f}, {quartiles}, "
        f"{len(pairs)} pairs"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ("triad", "gemm"):
        {"triad": triad, "gemm": gemm}[name]()
