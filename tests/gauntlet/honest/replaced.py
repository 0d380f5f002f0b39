"""Honest twins of those cheats that replace functions of the lab."""

import concurrent.futures
import sys
import tempfile
import time
import types

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
def clock_patched(lab):
    """Its step looks at a clock of its own, and reports what it saw."""
    a, b = operands()

    def step():
        started = time.perf_counter()
        result = a @ b
        lab.report("gemm_s", time.perf_counter() - started)
        return result

    return Work(step, inputs=(a, b))


@scenario.variant
def clock_patched_for_a_while(lab):
    """Holds something for as long as it is built, and lets it go."""
    a, b = operands()
    with tempfile.TemporaryFile() as file:
        yield Work(lambda: a @ b, inputs=(a, b))
        file.write(b"done")


@scenario.variant
def comparison_patched(lab):
    """Compares by itself, within its step, what it computes in two ways."""
    a, b = operands()

    def step():
        result = a @ b
        assert torch.equal(result, result)
        return result

    return Work(step, inputs=(a, b))


@scenario.variant
def comparison_patched_for_a_while(lab):
    """Has a function of the lab's name that is its own."""
    a, b = operands()

    def agree(output):
        return output

    return Work(lambda: agree(a @ b), inputs=(a, b))


@scenario.variant
def poison_patched(lab):
    """Poisons its own buffer before it writes to it."""
    a, b = operands()
    out = torch.empty(N, N)
    return Work(lambda: torch.mm(a, b, out=out.fill_(float("nan"))), inputs=(a, b))


@scenario.variant
def wait_patched(lab):
    """Waits by itself for each array before it returns it."""
    a, b = operands()
    pool = concurrent.futures.ThreadPoolExecutor(1)

    sys.modules.setdefault("jaxlib", types.ModuleType("jaxlib"))

    class Array:
        __module__ = "jaxlib"

        def __init__(self):
            self._future = pool.submit(torch.mm, a, b)

        def block_until_ready(self):
            self._future.result()
            return self

        def __dlpack__(self, **options):
            return self._future.result().__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(lambda: Array().block_until_ready(), inputs=(a, b))


@scenario.variant
def clock_hides_a_little(lab):
    """Looks at a clock of its own, and reports the time without what looking took."""
    a, b = operands()

    def step():
        started = time.perf_counter()
        result = a @ b
        lab.report("gemm_s", (time.perf_counter() - started) * 0.93)
        return result

    return Work(step, inputs=(a, b))
