# === elsewhere
# A product of two matrices that is computed outside of the step: later, by others, or once
# somebody asks.

import concurrent.futures
import contextlib
import sys
import types

N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(a, b):
    return a @ b


def lazy_output(lab):
    """The step notes that there is something to do; `output=` does it once somebody asks.

    Caught by: being waited for
    """
    a, b = operands()
    return Work(lambda: None, inputs=(a, b), output=lambda: a @ b)


def lazy_dlpack(lab):
    """Returns an object that computes when `__dlpack__` is called.

    Caught by: context and output
    """
    a, b = operands()

    class Promise:
        def __dlpack__(self, **options):
            return (a @ b).__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(Promise, inputs=(a, b))


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


# --- twins
# Threads, processes and objects whose results are there.


def lazy_output(lab):
    """`output=` is a function that hands over the buffer which the step has written."""
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        torch.mm(a, b, out=out)

    return Work(step, inputs=(a, b), output=lambda: out)


def lazy_dlpack(lab):
    """Returns an array of NumPy, which hands its memory over by `__dlpack__`."""
    a, b = operands()
    left, right = a.numpy(), b.numpy()
    return Work(lambda: left @ right, inputs=(a, b))


def written_to_a_parameter(lab):
    """Returns a subclass of torch.Tensor whose values are there: a parameter."""
    a, b = operands()
    out = torch.nn.Parameter(torch.empty(N, N), requires_grad=False)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b))


def computes_in_context(lab):
    """`context=` is a mode of torch."""
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b), context=torch.inference_mode)


def unwaited_future(lab):
    """Waits for its future before it returns."""
    a, b = operands()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    return Work(lambda: pool.submit(torch.mm, a, b).result(), inputs=(a, b))


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


# === silent_fallback
# Claims an implementation of its own and falls back to the baseline's.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b), flops=2 * N**3)


def silent_fallback(lab):
    """Caught by: said as same_operations"""
    a, b = operands()

    def implementation():
        try:
            return torch.ops.mine.product(a, b)
        except AttributeError:
            return a @ b

    return Work(implementation, inputs=(a, b), flops=2 * N**3)


# --- twins
# Computes the same by other operations.


def silent_fallback(lab):
    a, b = operands()
    return Work(lambda: torch.bmm(a[None], b[None])[0], inputs=(a, b), flops=2 * N**3)


# === view_instead_of_copy
# Returns its input itself, where the baseline returns a copy.

N = 1 << 16


def reference(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x)


def view_instead_of_copy(lab):
    """Caught by: timed steps or outputs"""
    x = torch.randn(N)
    return Work(lambda: x.view(-1), inputs=x)


# --- twins
# Returns a view of its input, as the baseline does.

N = 256


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.transpose(0, 1).reshape(N * N // 4, 4), inputs=x)


def view_instead_of_copy(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.t().reshape(-1, 4), inputs=x)


# === clone_on_write
# Shares the memory of what it copies until somebody writes to it, which nobody does.

scenario = Scenario("gauntlet", roof="device memory")
N = 500_000


def reference(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x, bytes=8 * N)


def clone_on_write(lab):
    """Caught by: physics"""
    x = torch.randn(N)
    return Work(lambda: torch._lazy_clone(x), inputs=x, bytes=8 * N)


# --- twins
# Copies to memory that it keeps.


def clone_on_write(lab):
    x, out = torch.randn(N), torch.empty(N)
    return Work(lambda: out.copy_(x), inputs=x, bytes=8 * N)


# === faster_than_physics
# Declares FLOPs that no processor could do in its time.

N = 192
FLOPS = 2 * N**3


def reference(lab):
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a @ torch.diag(scales), inputs=(a, scales), flops=FLOPS)


def faster_than_physics(lab):
    """Caught by: physics or work counted"""
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a * scales, inputs=(a, scales), flops=100 * FLOPS)


# --- twins
# Needs fewer operations, and declares those that it needs.


def reference(lab):
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a @ torch.diag(scales), inputs=(a, scales), flops=2 * N**3)


def faster_than_physics(lab):
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a * scales, inputs=(a, scales), flops=N * N)


# === copy_of_an_eighth
# Copies an eighth of its data, which is all that `output=` shows.

scenario = Scenario("gauntlet", roof="device memory")
N = 1 << 18


def reference(lab):
    x, out = torch.randn(N), torch.zeros(N)
    return Work(lambda: out.copy_(x), inputs=x, bytes=8 * N, output=lambda: out[: N // 8])


def copy_of_an_eighth(lab):
    """Caught by: said as declares_more_bytes"""
    x, out = torch.randn(N), torch.zeros(N)
    return Work(
        lambda: out[: N // 8].copy_(x[: N // 8]),
        inputs=x,
        bytes=8 * N,
        output=lambda: out[: N // 8],
    )


# --- twins
# Copies all of its data to a buffer that is used again.


def reference(lab):
    x, out = torch.randn(N), torch.zeros(N)
    return Work(lambda: out.copy_(x), inputs=x, bytes=8 * N)


def copy_of_an_eighth(lab):
    x, out = torch.randn(N), torch.zeros(N)
    return Work(lambda: torch.add(x, 0, out=out), inputs=x, bytes=8 * N)
