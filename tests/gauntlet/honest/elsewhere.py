"""Honest twins of `cheats/elsewhere.py`: threads, processes and objects whose results are there."""

import concurrent.futures
import os
import sys
import threading
import types

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def lazy_output(lab):
    """`output=` is a function that hands over the buffer which the step has written."""
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        torch.mm(a, b, out=out)

    return Work(step, inputs=(a, b), output=lambda: out)


@scenario.variant
def lazy_dlpack(lab):
    """Returns an array of NumPy, which hands its memory over by `__dlpack__`."""
    a, b = operands()
    left, right = a.numpy(), b.numpy()
    return Work(lambda: left @ right, inputs=(a, b))


@scenario.variant
def lazy_subclass(lab):
    """Returns a subclass of torch.Tensor whose values are there: a parameter."""
    a, b = operands()
    out = torch.nn.Parameter(torch.empty(N, N), requires_grad=False)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b))


@scenario.variant
def computes_in_context(lab):
    """`context=` is a mode of torch."""
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b), context=torch.inference_mode)


@scenario.variant
def unwaited_future(lab):
    """Waits for its future before it returns."""
    a, b = operands()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    return Work(lambda: pool.submit(torch.mm, a, b).result(), inputs=(a, b))


@scenario.variant
def asynchronous_array(lab):
    """Returns JAX-like arrays whose results are there: they are computed where they are asked
    for.
    """
    a, b = operands()

    sys.modules.setdefault("jaxlib", types.ModuleType("jaxlib"))

    class Array:
        __module__ = "jaxlib"

        def __init__(self):
            self._result = a @ b

        def block_until_ready(self):
            return self

        def __dlpack__(self, **options):
            return self._result.__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(Array, inputs=(a, b))


@scenario.variant
def thread_drops_work(lab):
    """A pool of threads, whose results the step waits for."""
    a, b = operands()
    pool, half = concurrent.futures.ThreadPoolExecutor(2), N // 2

    def step():
        halves = [pool.submit(torch.mm, part, b) for part in (a[:half], a[half:])]
        return torch.cat([part.result() for part in halves])

    yield Work(step, inputs=(a, b))
    pool.shutdown()


@scenario.variant
def thread_finishes_later(lab):
    """Two threads for two halves, joined before the step returns."""
    a, b = operands()
    out, half = torch.empty(N, N), N // 2

    def step():
        thread = threading.Thread(target=lambda: torch.mm(a[:half], b, out=out[:half]))
        thread.start()
        torch.mm(a[half:], b, out=out[half:])
        thread.join()
        return out

    return Work(step, inputs=(a, b))


@scenario.variant
def forked_child(lab):
    """Hands its work to a process that it forked, and waits for its answer."""
    a, b = operands()
    for shared in (a, b):
        shared.share_memory_()
    out = torch.empty(N, N).share_memory_()
    asked, ask = os.pipe()
    answered, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ask)
        while os.read(asked, 1):
            torch.mm(a, b, out=out)
            os.write(answer, b"x")
        os._exit(0)
    os.close(asked)

    def step():
        os.write(ask, b"x")
        os.read(answered, 1)
        return out

    yield Work(step, inputs=(a, b))
    os.close(ask)
    os.waitpid(pid, 0)
