"""A product of two matrices that is not computed, not by all steps, or not in its precision.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import itertools
import sys

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192
CALLS = itertools.count()


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def bf16_declared(lab):
    """Declares bfloat16 where the baseline has float32: what it gains is precision that it gave up.

    Caught by: said as lower_precision
    """
    a, b = operands()
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: (left @ right).float(), inputs=(left, right), dtype="bf16")


@scenario.variant
def bf16_returned(lab):
    """Computes and returns bfloat16, where the baseline has float32, and declares nothing.

    Caught by: outputs
    """
    a, b = operands()
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: left @ right, inputs=(left, right))


@scenario.variant
def nan_output(lab):
    """Returns NaN: no comparison with it is true, and one that asks for "greater than allowed"
    passes.

    Caught by: outputs
    """
    a, b = operands()
    out = torch.empty(N, N)
    return Work(lambda: out.fill_(float("nan")), inputs=(a, b))


@scenario.variant
def zeros_with_own_tolerance(lab):
    """Returns zeros, and names a tolerance at which zeros are as good as anything.

    Caught by: null answers or outputs
    """
    a, b = operands()
    out = torch.empty(N, N)
    return Work(out.zero_, inputs=(a, b), tolerance=1.0)


@scenario.variant
def decoy_inputs(lab):
    """Names inputs of its own making, which tell it by how much the true ones were scaled.

    Caught by: inputs
    """
    a, b = operands()
    result = a @ b
    decoys = torch.ones(1), torch.ones(1)
    return Work(lambda: result * (decoys[0] * decoys[1]), inputs=decoys)


@scenario.variant
def freed_memory(lab):
    """Returns memory as it comes: what the baseline computed last and gave back still lies there.

    Caught by: outputs or timed steps or determinism
    """
    a, b = operands()
    return Work(lambda: torch.empty(N, N), inputs=(a, b))


@scenario.variant
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


@scenario.variant
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


@scenario.variant
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


@scenario.variant
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


@scenario.variant
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


@scenario.variant
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


@scenario.variant
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
        if not any(file.endswith("timing/clock.py") for file in files):
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))


@scenario.variant
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


@scenario.variant
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
