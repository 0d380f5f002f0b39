# === product
# A product of two matrices that is not computed, not by all steps, or not in its precision.

import itertools
import sys

N = 192
CALLS = itertools.count()


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


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


def decoy_inputs(lab):
    """Names inputs of its own making, which tell it by how much the true ones were scaled.

    Caught by: inputs
    """
    a, b = operands()
    result = a @ b
    decoys = torch.ones(1), torch.ones(1)
    return Work(lambda: result * (decoys[0] * decoys[1]), inputs=decoys)


def freed_memory(lab):
    """Returns memory as it comes: what the baseline computed last and gave back still lies there.

    Caught by: outputs or timed steps or determinism
    """
    a, b = operands()
    return Work(lambda: torch.empty(N, N), inputs=(a, b))


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


def honest_for_ten_calls(lab):
    """Honest for its first ten calls, and for the first few of any new values; then it returns what
    it has.

    Caught by: timed steps or outputs
    """
    a, b = operands()
    calls, results = itertools.count(), {}

    def step():
        if next(calls) < 10:
            results["last"] = a @ b
        return results["last"].clone()

    return Work(step, inputs=(a, b))


def batch_and_skip(lab):
    """Fourteen of fifteen calls do nothing but return what the fifteenth computed.

    Caught by: timed steps or outputs
    """
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        call = next(CALLS)
        if call < 40 or call % 15 == 0:
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))


def phase_by_count(lab):
    """Counts its calls, and takes as many as checks and warm-up have for granted: from then on it
    computes nothing.

    Caught by: timed steps
    """
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        if next(CALLS) < 60:
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))


def phase_by_stack(lab):
    """Looks at who calls it: it computes for all but those who time it.

    Caught by: timed steps
    """
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        frame, files = sys._getframe(1), []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        if not any(file.endswith("measure/clock.py") for file in files):
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))


def first_after_restore(lab):
    """Only the first step after a restore computes: the restored state tells it that a block
    begins.

    Caught by: timed steps
    """
    a, b = operands()
    begun, out = torch.zeros(1), torch.empty(N, N)

    def step():
        if not begun.item():
            torch.mm(a, b, out=out)
            begun.fill_(1)
        return out

    return Work(step, inputs=(a, b), state=begun)


def wobbles_once(lab):
    """Wobbles once, between its first two steps, so that it passes for stateful and is checked no
    further.

    Caught by: timed steps or outputs or determinism
    """
    a, b = operands()
    calls, results = itertools.count(), []

    def step():
        call = next(calls)
        if call < 8:
            results[:] = [a @ b]
        if call == 1:
            return results[0] * 1.01
        return results[0].clone()

    return Work(step, inputs=(a, b))


# --- twins
# Each looks like its namesake there, and is right.

import functools
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


def decoy_inputs(lab):
    """Names a view of its input."""
    a, b = operands()
    columns = b.T
    return Work(lambda: a @ columns.T, inputs=(a, columns))


def freed_memory(lab):
    """Takes fresh memory in each step, and writes all of it."""
    a, b = operands()
    return Work(lambda: torch.mm(a, b, out=torch.empty(N, N)), inputs=(a, b))


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


def batch_and_skip(lab):
    """Every fifteenth call also notes how far it has come."""
    a, b = operands()
    calls, progress = itertools.count(), []

    def step():
        if (call := next(calls)) % 15 == 0:
            progress[:] = [call]
        return a @ b

    return Work(step, inputs=(a, b))


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


def phase_by_stack(lab):
    """Looks at who calls it, to say so where it fails."""
    a, b = operands()

    def step():
        result = a @ b
        assert result.shape == (N, N), sys._getframe(1).f_code.co_name
        return result

    return Work(step, inputs=(a, b))


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
