"""Honest twins of `cheats/caches.py`: they look at clocks, callers and values, and compute each
time.
"""

import collections
import gc
import sys
import time
import warnings

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128
RESULTS = {}


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def recomputed_after_3_us(lab):
    """Counts its pauses of 3 us."""
    return counting_pauses(3e-6)


@scenario.variant
def recomputed_after_30_us(lab):
    """Counts its pauses of 30 us."""
    return counting_pauses(30e-6)


@scenario.variant
def recomputed_after_300_us(lab):
    """Counts its pauses of 300 us."""
    return counting_pauses(300e-6)


@scenario.variant
def recomputed_after_1_ms(lab):
    """Counts its pauses of a millisecond."""
    return counting_pauses(1e-3)


@scenario.variant
def recomputed_for_another_caller(lab):
    """Counts how often it is called from which line."""
    a, b = operands()
    counts = collections.Counter()

    def step():
        frame = sys._getframe(1)
        counts[frame.f_code, frame.f_lineno] += 1
        return a @ b

    return Work(step, inputs=(a, b))


@scenario.variant
def recomputed_at_rare_call_sites(lab):
    """Has a function for each instruction that calls it, and all do the same."""
    a, b = operands()
    steps = collections.defaultdict(lambda: lambda: a @ b)
    return Work(lambda: steps[sys._getframe(1).f_lasti](), inputs=(a, b))


@scenario.variant
def recomputed_while_garbage_is_collected(lab):
    """Collects garbage in its first step, where nobody else does."""
    a, b = operands()
    collected = []

    def step():
        if not gc.isenabled() and not collected:
            collected.append(gc.collect(0))
        return a @ b

    return Work(step, inputs=(a, b))


@scenario.variant
def recomputed_unless_run(lab):
    """Has a step that is named `_run`, which calls another."""
    a, b = operands()

    def product():
        return a @ b

    def _run():
        return product()

    return Work(_run, inputs=(a, b))


@scenario.variant
def recomputed_when_poisoned(lab):
    """Looks for NaN in what it has computed."""
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        torch.mm(a, b, out=out)
        if bool(out.isnan().any()):
            warnings.warn("the product overflowed", stacklevel=2)
        return out

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_by_equality(lab):
    """Compares its inputs with each other, of which a square needs one only."""
    a, b = operands()

    def step():
        return a.matrix_power(2) if torch.equal(a, b) else a @ b

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_by_checksum(lab):
    """Compares checksums of its inputs with that of its result, as fault tolerance does."""
    a, b = operands()
    errors = {}

    def step():
        result = a @ b
        errors["last"] = float(result.sum() - a.sum(0) @ b.sum(1))
        return result

    return Work(step, inputs=(a, b))


@scenario.variant
def memoised_and_padded(lab):
    """Computes all of it, and 0.45 of it again."""
    a, b = operands()
    padding = torch.empty(N * 45 // 100, N)

    def step():
        torch.mm(a[: len(padding)], b, out=padding)
        return a @ b

    return Work(step, inputs=(a, b))


@scenario.variant
def filled_by_the_baseline(lab):
    """Keeps its result in a dictionary of the file."""
    a, b = operands()

    def step():
        RESULTS["last"] = a @ b
        return RESULTS["last"]

    return Work(step, inputs=(a, b))


def counting_pauses(pause_s):
    a, b = operands()
    pauses, ended = [0], [0.0]

    def step():
        pauses[0] += time.perf_counter() - ended[0] > pause_s
        result = a @ b
        ended[0] = time.perf_counter()
        return result

    return Work(step, inputs=(a, b))
