"""A product of two matrices that is computed outside of the step: later, by others, or once
somebody asks.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import concurrent.futures
import contextlib
import os
import queue
import signal
import sys
import threading
import time
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
    """The step notes that there is something to do; `output=` does it once somebody asks.

    Caught by: context and output
    """
    a, b = operands()
    return Work(lambda: None, inputs=(a, b), output=lambda: a @ b)


@scenario.variant
def lazy_dlpack(lab):
    """Returns an object that computes when `__dlpack__` is called.

    Caught by: streams and threads
    """
    a, b = operands()

    class Promise:
        def __dlpack__(self, **options):
            return (a @ b).__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(Promise, inputs=(a, b))


@scenario.variant
def lazy_subclass(lab):
    """Returns a subclass of torch.Tensor that computes once an operation is called on it.

    Caught by: streams and threads
    """
    a, b = operands()

    class Lazy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            def computed(value):
                return torch.mm(a, b) if isinstance(value, Lazy) else value

            with torch._C.DisableTorchFunctionSubclass():
                return function(*map(computed, args), **(kwargs or {}))

    empty = torch.empty(N, N)
    return Work(lambda: empty.as_subclass(Lazy), inputs=(a, b))


@scenario.variant
def computes_in_context(lab):
    """`context=` computes when it is entered, outside of the clock.

    Caught by: timed steps
    """
    a, b = operands()
    out = torch.empty(N, N)

    @contextlib.contextmanager
    def context():
        torch.mm(a, b, out=out)
        yield

    return Work(lambda: out, inputs=(a, b), context=context)


@scenario.variant
def unwaited_future(lab):
    """Returns a future of its output, and lets somebody else wait for it.

    Caught by: being waited for
    """
    a, b = operands()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    last = []

    def step():
        last[:] = [pool.submit(torch.mm, a, b)]
        return last[0]

    return Work(step, inputs=(a, b), output=lambda: last[0].result())


@scenario.variant
def asynchronous_array(lab):
    """Returns an array whose result a thread computes, and waits for it in `block_until_ready`, as
    JAX does.

    Caught by: being waited for
    """
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

    return Work(Array, inputs=(a, b))


@scenario.variant
def thread_drops_work(lab):
    """A thread takes the newest of what waits and drops the rest; the step returns at once.

    Caught by: streams and threads or context and output
    """
    a, b = operands()
    out, wanted = torch.empty(N, N), threading.Event()
    ended = threading.Event()

    def work():
        while not ended.is_set():
            if wanted.wait(0.05):
                wanted.clear()
                torch.mm(a, b, out=out)

    threading.Thread(target=work, daemon=True).start()

    def output():
        time.sleep(5e-3)
        return out

    yield Work(wanted.set, inputs=(a, b), output=output)
    ended.set()


@scenario.variant
def thread_finishes_later(lab):
    """Hands its work to a thread and returns; the thread writes the output soon after the block has
    ended.

    Caught by: streams and threads or context and output or determinism
    """
    a, b = operands()
    out, waiting = torch.empty(N, N), queue.SimpleQueue()

    def work():
        while waiting.get():
            torch.mm(a, b, out=out)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def step():
        waiting.put(True)

    yield Work(step, inputs=(a, b), output=lambda: (wait_until_empty(waiting), out)[1])
    waiting.put(False)


@scenario.variant
def forked_child(lab):
    """Hands its work to a process that it forked, and returns at once.

    Caught by: streams and threads or context and output
    """
    a, b = operands()
    for shared in (a, b):
        shared.share_memory_()
    out = torch.empty(N, N).share_memory_()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        while os.read(read_end, 1):
            torch.mm(a, b, out=out)
        os._exit(0)
    os.close(read_end)

    def step():
        os.write(write_end, b"x")

    yield Work(step, inputs=(a, b), output=lambda: (time.sleep(5e-3), out)[1])
    os.kill(pid, signal.SIGKILL)  # thousands of steps may wait for it
    os.close(write_end)
    os.waitpid(pid, 0)


def wait_until_empty(waiting):
    while not waiting.empty():
        time.sleep(1e-4)
    time.sleep(2e-3)
