"""Theoretical occupancy, against what CUDA's occupancy calculator says of the same kernels."""

import pytest

from gpulab.features.kernels.instructions import LIMITS, occupancy


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "share", "limiter"),
    [
        ("sm_90", 256, 32, 0, 8, 1.0, "threads"),
        ("sm_90", 256, 33, 0, 6, 0.75, "registers"),
        ("sm_90", 256, 255, 0, 1, 0.125, "registers"),
        ("sm_90", 1024, 64, 0, 1, 0.5, "registers"),
        ("sm_90", 1024, 65, 0, 0, 0.0, "registers"),  # such a launch fails
        ("sm_90", 32, 16, 0, 32, 0.5, "blocks"),
        ("sm_90", 256, 32, 100 << 10, 2, 0.25, "shared memory"),
        ("sm_80", 256, 32, 48 << 10, 3, 0.375, "shared memory"),
        ("sm_86", 256, 32, 0, 6, 1.0, "threads"),
        ("sm_75", 1024, 64, 0, 1, 1.0, "threads"),
        ("sm_100", 128, 40, 0, 12, 0.75, "registers"),
    ],
)
def test_the_calculator_says_the_same(arch, threads, registers, shared, blocks, share, limiter):
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.share, found.limiter) == (blocks, pytest.approx(share), limiter)


@pytest.mark.parametrize("arch", LIMITS)
def test_more_of_anything_never_fits_more_blocks(arch):
    for threads in (1, 32, 33, 100, 512, 1024):
        blocks = [occupancy(arch, threads, registers, 0).blocks for registers in range(1, 256)]
        assert blocks == sorted(blocks, reverse=True), threads
        blocks = [occupancy(arch, threads, 32, shared).blocks for shared in range(0, 64 << 10, 512)]
        assert blocks == sorted(blocks, reverse=True), threads


def test_of_an_architecture_that_is_not_known_nothing_is_said():
    assert occupancy("sm_42", 256, 32, 0) is None
