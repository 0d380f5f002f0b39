"""A small product that is remembered, and computed again only for those who look.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import collections
import gc
import sys
import time

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def recomputed_after_3_us(lab):
    """Computes only if the last call was over 3 us ago, as none is within a block.

    Caught by: timed steps or outputs
    """
    return recomputed_after(3e-6)


@scenario.variant
def recomputed_after_30_us(lab):
    """Computes only if the last call was over 30 us ago.

    Caught by: timed steps or outputs
    """
    return recomputed_after(30e-6)


@scenario.variant
def recomputed_after_300_us(lab):
    """Computes only if the last call was over 300 us ago.

    Caught by: timed steps or outputs
    """
    return recomputed_after(300e-6)


@scenario.variant
def recomputed_after_1_ms(lab):
    """Computes only if the last call was over a millisecond ago.

    Caught by: timed steps or outputs
    """
    return recomputed_after(1e-3)


@scenario.variant
def recomputed_for_another_caller(lab):
    """Computes unless the call that calls it, and its line, are those that called it last, as
    within a block.

    Caught by: timed steps
    """
    last = [None, None]

    def is_due():
        frame = sys._getframe(2)
        changed = frame is not last[0] or frame.f_lineno != last[1]
        last[:] = frame, frame.f_lineno
        return changed

    return recomputed_if(is_due)


@scenario.variant
def recomputed_at_rare_call_sites(lab):
    """Computes for the first 48 calls from a place, and every 64th: blocks are timed where most
    calls come from.

    Caught by: timed steps or outputs
    """
    calls = collections.Counter()

    def is_due():
        frame = sys._getframe(2)
        site = frame.f_code, frame.f_lasti
        calls[site] += 1
        return calls[site] < 48 or calls[site] % 64 == 0

    return recomputed_if(is_due)


@scenario.variant
def recomputed_while_garbage_is_collected(lab):
    """Computes unless the garbage collector is off and no tracer or profiler is on, as under a
    stopwatch.

    Caught by: timed steps or outputs
    """
    return recomputed_if(
        lambda: (
            gc.isenabled()
            or sys.gettrace()
            or sys.getprofile()
            or torch.autograd._profiler_enabled()
        )
    )


@scenario.variant
def recomputed_unless_run(lab):
    """Computes unless the function that calls it is named `call_each`, as the one is that repeats
    timed steps.

    Caught by: timed steps or outputs
    """
    return recomputed_if(lambda: sys._getframe(2).f_code.co_name != "call_each")


@scenario.variant
def recomputed_when_poisoned(lab):
    """Computes when its output holds NaN, or when one of 64 samples of its inputs has moved.

    Caught by: timed steps or outputs
    """
    a, b = operands()
    out, samples = torch.full((N, N), float("nan")), (a.view(-1)[:: N * 4], b.view(-1)[:: N * 4])
    before = [sample.clone() for sample in samples]

    def step():
        moved = not all(map(torch.equal, samples, before))
        if moved or bool(out.view(-1)[:: N * 4].isnan().any()):
            torch.mm(a, b, out=out)
            before[:] = [sample.clone() for sample in samples]
        return out

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_by_equality(lab):
    """Compares its inputs with copies of those that it computed last: right whatever they are.

    Caught by: timed steps or remembers_its_inputs
    """
    return memoised(lambda a, b, last: torch.equal(a, last[0]) and torch.equal(b, last[1]))


@scenario.variant
def memoised_by_checksum(lab):
    """Memoised by the sums of its inputs.

    Caught by: timed steps or remembers_its_inputs
    """
    a, b = operands()
    results = {}

    def step():
        key = float(a.sum()), float(b.sum())
        if key not in results:
            results.clear()
            results[key] = a @ b
        return results[key].clone()

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_and_padded(lab):
    """Remembers its result, and computes 0.45 of it again for nothing: twice as fast is nothing to
    wonder at.

    Caught by: timed steps or remembers_its_inputs
    """
    a, b = operands()
    padding = torch.empty(N * 45 // 100, N)
    results = {}

    def step():
        key = float(a.sum()), float(b.sum())
        if key not in results:
            results.clear()
            results[key] = a @ b
        torch.mm(a[: len(padding)], b, out=padding)
        return results[key].clone()

    return Work(step, inputs=(a, b))


def recomputed_after(pause_s):
    a, b = operands()
    results, ended = [], [0.0]

    def step():
        if time.perf_counter() - ended[0] > pause_s:
            results[:] = [a @ b]
        ended[0] = time.perf_counter()
        return results[0].clone()

    return Work(step, inputs=(a, b))


def recomputed_if(is_due):
    a, b = operands()
    results = []

    def step():
        if is_due() or not results:
            results[:] = [a @ b]
        return results[0].clone()

    return Work(step, inputs=(a, b))


def memoised(is_known):
    a, b = operands()
    last = []

    def step():
        if not last or not is_known(a, b, last):
            last[:] = [a.clone(), b.clone(), a @ b]
        return last[2].clone()

    return Work(step, inputs=(a, b))
