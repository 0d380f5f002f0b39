# === product
# A product of two matrices that is not computed, not by all steps, or not in its precision.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(a, b):
    return a @ b


def bf16_declared(lab):
    """Declares bfloat16 where the baseline has float32: what it gains is precision that it gave up.

    Caught by: said as lower_precision
    """
    a, b = operands()
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: (left @ right).float(), inputs=(left, right), dtype="bf16")


def bf16_returned(lab):
    """Computes and returns bfloat16, where the baseline has float32, and declares nothing.

    Caught by: outputs
    """
    a, b = operands()
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: left @ right, inputs=(left, right))


def nan_output(lab):
    """Returns NaN: no comparison with it is true, and one that asks for "greater than allowed"
    passes.

    Caught by: outputs
    """
    a, b = operands()
    out = torch.empty(N, N)
    return Work(lambda: out.fill_(float("nan")), inputs=(a, b))


def zeros_with_own_tolerance(lab):
    """Returns zeros, and names a tolerance at which zeros are as good as anything.

    Caught by: null answers or outputs
    """
    a, b = operands()
    out = torch.empty(N, N)
    return Work(out.zero_, inputs=(a, b), tolerance=1.0)


def freed_memory(a, b):
    """Returns memory as it comes: what the baseline computed last and gave back still lies there.

    Caught by: outputs or timed steps or determinism
    """
    return torch.empty(N, N)


def replayed_by_pointer(lab):
    """The result of the same addresses is taken for the same result.

    Caught by: outputs
    """
    a, b = operands()
    results = {}

    def step():
        key = a.data_ptr(), b.data_ptr(), a._version, b._version
        if key not in results:
            results[key] = a @ b
        return results[key].clone()

    return Work(step, inputs=(a, b))


def memoised_by_fingerprint(lab):
    """Memoised by a fingerprint of all inputs: right whatever the values are, and never computed
    while it is timed.

    Caught by: timed steps
    """
    a, b = operands()
    results = {}

    def step():
        key = float(a.sum()), float(b.sum()), float(a[-1, -1]), float(b[-1, -1])
        if key not in results:
            results.clear()
            results[key] = a @ b
        return results[key].clone()

    return Work(step, inputs=(a, b))


def memoised_by_samples(lab):
    """Memoised on two sampled elements: its result is computed again only where these change.

    Caught by: timed steps or outputs
    """
    a, b = operands()
    results = {}

    def step():
        key = float(a[0, 0]), float(b[N // 2, N // 2])
        if key not in results:
            results.clear()
            results[key] = a @ b
        return results[key].clone()

    return Work(step, inputs=(a, b))


# --- twins
# Each looks like a cheat, and is right.

import functools
import itertools
import time


def bf16_declared(lab):
    """Declares the float32 that it computes in."""
    a, b = operands()
    return Work(lambda: torch.mm(a, b), inputs=(a, b), dtype="fp32")


def bf16_returned(lab):
    """Computes in bfloat16, and declares it."""
    a, b = operands()
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: left @ right, inputs=(left, right), dtype="bf16")


def zeros_with_own_tolerance(lab):
    """Sums in another order, and names a tolerance that lets through nothing else."""
    a, b = operands()

    def step():
        return torch.mm(a[:, : N // 2], b[: N // 2]).addmm_(a[:, N // 2 :], b[N // 2 :])

    return Work(step, inputs=(a, b), tolerance=1e-5)


def view_named(lab):
    """Names a view of its input."""
    a, b = operands()
    columns = b.T
    return Work(lambda: a @ columns.T, inputs=(a, columns))


def freed_memory(a, b):
    """Takes fresh memory in each step, and writes all of it."""
    return torch.mm(a, b, out=torch.empty(N, N))


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


def autotuned(lab):
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


def made_at_first_call(lab):
    """Compiles, as it were, at its first call."""
    a, b = operands()
    compiled = []

    def step():
        if not compiled:
            time.sleep(0.01)
            compiled.append(torch.mm)
        return compiled[0](a, b)

    return Work(step, inputs=(a, b))


def order_changes(lab):
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
