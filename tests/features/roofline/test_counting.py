"""What one untimed step shows of its operations and their operands."""

from threading import Thread

import pytest
import torch

from gpulab.engine.build.build import Build
from gpulab.features.roofline.counting import count
from gpulab.scenario import Work

N = 64
A, B, OUT = torch.rand(N, N), torch.rand(N, N), torch.empty(N, N)
CHANNELS = torch.rand(2, 8, 8, 8).contiguous(memory_format=torch.channels_last)
BYTES = A.nbytes


def counted(step):
    return count("v", Build(Work(step), 0.0, None))


@pytest.mark.parametrize(
    ("step", "operands"),
    [
        (lambda: torch.add(A, B, out=OUT), 3),
        (lambda: A.t().contiguous(), 2),
        (lambda: torch.mm(A.t(), B, out=OUT), 3),
        (lambda: CHANNELS.relu(), 2 * CHANNELS.nbytes / BYTES),
        (lambda: A[:, ::2].clone(), 1),
    ],
)
def test_bytes_of_operands(step, operands):
    assert counted(step).operand_bytes == operands * BYTES


def test_memory_below_the_operands_counts_once():
    def step():
        for _ in range(10):
            A.add_(B)
        return [row.sum() for row in A]

    result = counted(step)
    assert result.operand_bytes >= 20 * BYTES + BYTES
    assert 2 * BYTES <= result.distinct_bytes <= 2 * BYTES + N * 4


def test_what_torch_does_not_see_has_no_count_of_bytes():
    result = counted(lambda: None)
    assert (result.operations, result.operand_bytes, result.distinct_bytes) == (0, None, None)


def test_a_step_that_works_under_no_dispatch_mode_has_no_counts():
    def step():
        if torch._C._len_torch_dispatch_stack():
            raise RuntimeError("not under a mode")

    assert counted(step) is None


def test_only_convolutions_may_need_fewer_flops_than_their_formula():
    weight = torch.rand(4, 8, 3, 3)
    assert counted(lambda: torch.conv2d(CHANNELS, weight)).fewer_flops
    assert not counted(lambda: torch.mm(A, B)).fewer_flops


def test_what_other_threads_multiply_leaves_no_count_of_flops():
    def step():
        thread = Thread(target=torch.mm, args=(A, B))
        thread.start()
        thread.join()
        return A @ B

    assert counted(step).flops is None
