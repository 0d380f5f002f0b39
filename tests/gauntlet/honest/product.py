"""Honest twins of `cheats/product.py`: each looks like its namesake there, and is right."""

import functools
import itertools
import sys
import time

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def bf16_declared(lab):
    """Declares the float32 that it computes in."""
    a, b = operands()
    return Work(lambda: torch.mm(a, b), inputs=(a, b), dtype="fp32")


@scenario.variant
def bf16_returned(lab):
    """Computes in bfloat16, and declares it."""
    a, b = operands()
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: left @ right, inputs=(left, right), dtype="bf16")


@scenario.variant
def zeros_with_own_tolerance(lab):
    """Sums in another order, and names a tolerance that lets through nothing else."""
    a, b = operands()

    def step():
        return torch.mm(a[:, : N // 2], b[: N // 2]).addmm_(a[:, N // 2 :], b[N // 2 :])

    return Work(step, inputs=(a, b), tolerance=1e-5)


@scenario.variant
def decoy_inputs(lab):
    """Names a view of its input."""
    a, b = operands()
    columns = b.T
    return Work(lambda: a @ columns.T, inputs=(a, columns))


@scenario.variant
def freed_memory(lab):
    """Takes fresh memory in each step, and writes all of it."""
    a, b = operands()
    return Work(lambda: torch.mm(a, b, out=torch.empty(N, N)), inputs=(a, b))


@scenario.variant
def replayed_by_pointer(lab):
    """A recorded list of operations on fixed buffers, replayed as a graph is: each replay reads its
    inputs again.
    """
    a, b = operands()
    out = torch.empty(N, N)
    recorded = [functools.partial(torch.mm, a, b, out=out), functools.partial(out.mul_, 1.0)]

    def step():
        for operation in recorded:
            operation()
        return out

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_by_fingerprint(lab):
    """A workspace that is kept, by the size that a step needs."""
    a, b = operands()
    workspaces = {}

    def step():
        size = a.shape[0], b.shape[1]
        if size not in workspaces:
            workspaces[size] = torch.empty(size)
        return torch.mm(a, b, out=workspaces[size])

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_by_samples(lab):
    """A cache of plans, by shape and dtype: what is computed is computed each time."""
    a, b = operands()
    plans = {}

    def step():
        key = a.shape, b.shape, a.dtype
        if key not in plans:
            plans[key] = torch.mm if len(a.shape) == 2 else torch.bmm
        return plans[key](a, b)

    return Work(step, inputs=(a, b))


@scenario.variant
def honest_for_ten_calls(lab):
    """An autotuner: its first ten calls try two ways in turn, all later ones take the faster."""
    a, b = operands()
    calls, ways = itertools.count(), (torch.mm, torch.matmul)
    seconds = [0.0, 0.0]

    def step():
        call = next(calls)
        if call >= 10:
            return ways[seconds.index(min(seconds))](a, b)
        started = time.perf_counter()
        result = ways[call % 2](a, b)
        seconds[call % 2] += time.perf_counter() - started
        return result

    return Work(step, inputs=(a, b))


@scenario.variant
def batch_and_skip(lab):
    """Every fifteenth call also notes how far it has come."""
    a, b = operands()
    calls, progress = itertools.count(), []

    def step():
        if (call := next(calls)) % 15 == 0:
            progress[:] = [call]
        return a @ b

    return Work(step, inputs=(a, b))


@scenario.variant
def phase_by_count(lab):
    """Compiles, as it were, at its first call."""
    a, b = operands()
    compiled = []

    def step():
        if not compiled:
            time.sleep(0.01)
            compiled.append(torch.mm)
        return compiled[0](a, b)

    return Work(step, inputs=(a, b))


@scenario.variant
def phase_by_stack(lab):
    """Looks at who calls it, to say so where it fails."""
    a, b = operands()

    def step():
        result = a @ b
        assert result.shape == (N, N), sys._getframe(1).f_code.co_name
        return result

    return Work(step, inputs=(a, b))


@scenario.variant
def wobbles_once(lab):
    """Sums in an order that changes from step to step: the last bits differ, no more than rounding
    does.
    """
    a, b = operands()
    calls = itertools.count()

    def step():
        half = N // 2
        parts = [(slice(None, half)), (slice(half, None))]
        first, second = parts if next(calls) % 2 else reversed(parts)
        return torch.mm(a[:, first], b[first]).addmm_(a[:, second], b[second])

    return Work(step, inputs=(a, b))
