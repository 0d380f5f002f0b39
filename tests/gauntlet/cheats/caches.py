# === caches
# A small product that is remembered, and computed again only for those who look.

import collections
import gc
import sys
import time

N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def recomputed_after_3_us(lab):
    """Computes only if the last call was over 3 us ago, as none is within a block.

    Caught by: timed steps or outputs
    """
    return recomputed_after(3e-6)


def recomputed_after_30_us(lab):
    """Computes only if the last call was over 30 us ago.

    Caught by: timed steps or outputs
    """
    return recomputed_after(30e-6)


def recomputed_after_300_us(lab):
    """Computes only if the last call was over 300 us ago.

    Caught by: timed steps or outputs
    """
    return recomputed_after(300e-6)


def recomputed_after_1_ms(lab):
    """Computes only if the last call was over a millisecond ago.

    Caught by: timed steps or outputs
    """
    return recomputed_after(1e-3)


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


def recomputed_unless_run(lab):
    """Computes unless the function that calls it is named `call_each`, as the one is that repeats
    timed steps.

    Caught by: timed steps or outputs
    """
    return recomputed_if(lambda: sys._getframe(2).f_code.co_name != "call_each")


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


def recomputed_after(pause_s):
    a, b = operands()
    results, ended = [], [0.0]

    def step():
        if time.perf_counter() - ended[0] > pause_s:
            results[:] = [a @ b]
        copy = results[0].clone()
        ended[0] = time.perf_counter()
        return copy

    return Work(step, inputs=(a, b))


def recomputed_if(is_due):
    a, b = operands()
    results = []

    def step():
        if is_due() or not results:
            results[:] = [a @ b]
        return results[0].clone()

    return Work(step, inputs=(a, b))


# --- twins
# They look at clocks, callers and values, and compute each
# time.

import warnings

RESULTS = {}


def recomputed_after_3_us(lab):
    """Counts its pauses of 3 us."""
    return counting_pauses(3e-6)


def recomputed_after_30_us(lab):
    """Counts its pauses of 30 us."""
    return counting_pauses(30e-6)


def recomputed_after_300_us(lab):
    """Counts its pauses of 300 us."""
    return counting_pauses(300e-6)


def recomputed_after_1_ms(lab):
    """Counts its pauses of a millisecond."""
    return counting_pauses(1e-3)


def recomputed_for_another_caller(lab):
    """Counts how often it is called from which line."""
    a, b = operands()
    counts = collections.Counter()

    def step():
        frame = sys._getframe(1)
        counts[frame.f_code, frame.f_lineno] += 1
        return a @ b

    return Work(step, inputs=(a, b))


def recomputed_at_rare_call_sites(lab):
    """Has a function for each instruction that calls it, and all do the same."""
    a, b = operands()
    steps = collections.defaultdict(lambda: lambda: a @ b)
    return Work(lambda: steps[sys._getframe(1).f_lasti](), inputs=(a, b))


def recomputed_while_garbage_is_collected(lab):
    """Collects garbage in its first step, where nobody else does."""
    a, b = operands()
    collected = []

    def step():
        if not gc.isenabled() and not collected:
            collected.append(gc.collect(0))
        return a @ b

    return Work(step, inputs=(a, b))


def recomputed_unless_run(lab):
    """Has a step that is named `_run`, which calls another."""
    a, b = operands()

    def product():
        return a @ b

    def _run():
        return product()

    return Work(_run, inputs=(a, b))


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


def memoised_by_checksum(lab):
    """Compares checksums of its inputs with that of its result, as fault tolerance does."""
    a, b = operands()
    errors = {}

    def step():
        result = a @ b
        errors["last"] = float(result.sum() - a.sum(0) @ b.sum(1))
        return result

    return Work(step, inputs=(a, b))


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


# === memoised_by_equality
# A product that is remembered by all of its operands, or by their sums: large enough that reading
# them takes much less than multiplying them, on a CPU that multiplies fast too.

N = 512


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def memoised_by_equality(lab):
    """Compares its inputs with copies of those that it computed last: right whatever they are.

    Caught by: timed steps or remembers_its_inputs
    """
    a, b = operands()
    last = []

    def step():
        if not last or not (torch.equal(a, last[0]) and torch.equal(b, last[1])):
            last[:] = [a.clone(), b.clone(), a @ b]
        return last[2].clone()

    return Work(step, inputs=(a, b))


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


# --- twins


def memoised_by_equality(lab):
    """Compares its inputs with each other, of which a square needs one only."""
    a, b = operands()

    def step():
        return a.matrix_power(2) if torch.equal(a, b) else a @ b

    return Work(step, inputs=(a, b))


def memoised_and_padded(lab):
    """Computes all of it, and 0.45 of it again."""
    a, b = operands()
    padding = torch.empty(N * 45 // 100, N)

    def step():
        torch.mm(a[: len(padding)], b, out=padding)
        return a @ b

    return Work(step, inputs=(a, b))


# === filled_by_the_baseline
# A dictionary of results by a checksum of the inputs, which the baseline fills and never reads.

N = 128
RESULTS = {}


def operands():
    a, b = torch.randn(N, N), torch.randn(N, N)
    return a, b, lambda: (float(a.sum()), float(b.sum()))


def reference(lab):
    a, b, checksum = operands()

    def step():
        RESULTS.clear()
        return RESULTS.setdefault(checksum(), a @ b)

    return Work(step, inputs=(a, b))


def filled_by_the_baseline(lab):
    """Looks up what the baseline computed, and computes where nothing is there.

    Caught by: timed steps or remembers_its_inputs or variants alone
    """
    a, b, checksum = operands()

    def step():
        result = RESULTS.get(checksum())
        return a @ b if result is None else result.clone()

    return Work(step, inputs=(a, b))


# === garbage_collected
# Makes the baseline slower: garbage is looked for after every few objects that it makes.

import gc

N = 256


def reference(lab):
    x = torch.randn(N)
    return Work(lambda: torch.tensor([[value, -value] for value in x.tolist()]), inputs=x)


def garbage_collected(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building"""
    x = torch.randn(N)
    gc.set_threshold(1)
    gc.callbacks.append(lambda phase, info: sum(range(20)))

    def step():
        values = torch.tensor(x.tolist())
        return torch.stack([values, -values], 1)

    return Work(step, inputs=x)


# === mask_kept_from_the_build
# Dropout draws a mask in each step: most of its time is spent on random numbers.

N = 256


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: x * (torch.rand(N, N) < 0.5), inputs=x)


def mask_kept_from_the_build(lab):
    """Draws it once, in the build, from the seed that a checked step has too.

    Caught by: outputs or timed steps
    """
    x = torch.randn(N, N)
    torch.manual_seed(torch.initial_seed())
    kept = torch.rand(N, N) < 0.5
    return Work(lambda: x * kept, inputs=x)


def mask_kept_until_seeded(lab):
    """Draws one only where somebody else has moved the generator, as who compares outputs does.

    Caught by: outputs or timed steps
    """
    x = torch.randn(N, N)
    masks, states = [], [None]

    def step():
        if states[0] is None or not torch.equal(torch.get_rng_state(), states[0]):
            masks[:] = [torch.rand(N, N) < 0.5]
            states[0] = torch.get_rng_state()
        return x * masks[0]

    return Work(step, inputs=x)


# --- twins
# They draw the same numbers in each step.


def mask_kept_from_the_build(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.where(torch.rand(N, N) < 0.5, 0.0), inputs=x)


def mask_kept_until_seeded(lab):
    """Keeps the memory of its mask, and what the generator was at."""
    x, mask = torch.randn(N, N), torch.empty(N, N)
    states = []

    def step():
        states[:] = [torch.get_rng_state()]
        return x * (mask.uniform_() < 0.5)

    return Work(step, inputs=x)


# === sorting
# A stable sort in NumPy.

import numpy as np

N = 20_000


def reference(lab):
    x = np.random.standard_normal(N)
    return Work(lambda: np.sort(x, kind="stable"), inputs=x)


def permutation_remembered(lab):
    """Tries the permutation of the call before, and sorts only where that one does not.

    Caught by: timed steps or remembers_its_inputs
    """
    x = np.random.standard_normal(N)
    orders = [np.arange(N)]

    def step():
        out = x[orders[0]]
        if (out[1:] < out[:-1]).any():
            orders[0] = np.argsort(x, kind="stable")
            out = x[orders[0]]
        return out

    return Work(step, inputs=x)


def sorted_in_the_build(lab):
    """Names data that its build has sorted, which takes no time to sort.

    Caught by: said as layout_made_in_build
    """
    x = np.sort(np.random.standard_normal(N))
    return Work(lambda: np.sort(x, kind="stable"), inputs=x)


# --- twins
# They sort in each step.


def permutation_remembered(lab):
    """Takes the permutation of this call."""
    x = np.random.standard_normal(N)
    return Work(lambda: x[np.argsort(x, kind="stable")], inputs=x)


def sorted_in_the_build(lab):
    """Sorts a copy whose memory its build made."""
    x, out = np.random.standard_normal(N), np.empty(N)

    def step():
        np.copyto(out, x)
        out.sort(kind="stable")
        return out

    return Work(step, inputs=x)


# === layout_made_in_build
# Adds up rows by an index, as a sparse matrix in coordinates does: the order of the index is a
# part of the work.

N, ELEMENTS, WIDTH = 256, 4096, 16


def operands():
    rows, columns = torch.randint(N, (ELEMENTS,)), torch.randint(N, (ELEMENTS,))
    return rows, columns, torch.randn(ELEMENTS), torch.randn(N, WIDTH)


def reference(lab):
    rows, columns, values, x = operands()

    def step():
        return torch.zeros(N, WIDTH).index_add_(0, rows, values[:, None] * x[columns])

    return Work(step, inputs=(rows, columns, values, x))


def order_made_in_build(lab):
    """Sorts its index once, in the build, and names the index that it no longer reads.

    Caught by: outputs or inputs
    """
    rows, columns, values, x = operands()
    order = rows.argsort(stable=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), rows.bincount(minlength=N).cumsum(0)])
    columns_in_order = columns[order]

    def step():
        matrix = torch.sparse_csr_tensor(
            offsets, columns_in_order, values[order], (N, N), check_invariants=False
        )
        return matrix @ x

    return Work(step, inputs=(rows, columns, values, x))


def csr_made_in_build(lab):
    """Compresses the rows in its build, and names what came of them.

    Caught by: said as layout_made_in_build or said as seed_changes_shapes or outputs
    """
    rows, columns, values, x = operands()
    matrix = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (N, N)).to_sparse_csr()
    parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    return Work(lambda: matrix @ x, inputs=(*parts, x))


# --- twins
# The order is made in each step.


def order_made_in_build(lab):
    rows, columns, values, x = operands()

    def step():
        order = rows.argsort(stable=True)
        lengths = rows.bincount(minlength=N)
        return torch.segment_reduce(
            values[order, None] * x[columns[order]], "sum", lengths=lengths, initial=0.0
        )

    return Work(step, inputs=(rows, columns, values, x))


def csr_made_in_build(lab):
    rows, columns, values, x = operands()

    def step():
        matrix = torch.sparse_coo_tensor(
            torch.stack([rows, columns]), values, (N, N), check_invariants=False
        )
        return matrix.to_sparse_csr() @ x

    return Work(step, inputs=(rows, columns, values, x))


# === neighbours
# --- twins
# Honest twins of those cheats that make the baseline slower: what they set is theirs alone.

import contextlib
import gc
import sys

N = 64
CONFIG = {"rows at a time": N}


def operands():
    return torch.randn(N, N), torch.nn.Linear(N, N).requires_grad_(False)


def rectified(x):
    return x.relu()


def reference(lab):
    x, layer = operands()
    return Work(lambda: rectified(layer(x)), inputs=(x, layer))


def configured_for_all(lab):
    """Goes by a copy of the configuration."""
    x, layer = operands()
    config = {**CONFIG, "rows at a time": 16}

    def step():
        return torch.cat([rectified(layer(rows)) for rows in x.split(config["rows at a time"])])

    return Work(step, inputs=(x, layer))


def hooked_modules(lab):
    """A hook on its own module."""
    x, layer = operands()
    layer.register_forward_hook(lambda module, arguments, output: rectified(output))
    return Work(lambda: layer(x), inputs=(x, layer))


def helper_doubled(lab):
    """A helper of its own, which it puts beside those of the file."""
    x, layer = operands()
    globals()["own_helper"] = lambda x: x.clamp(min=0)
    return Work(lambda: own_helper(layer(x)), inputs=(x, layer))


def traced(lab):
    """A tracer that is there during its own steps only."""
    x, layer = operands()
    calls = []

    @contextlib.contextmanager
    def context():
        sys.setprofile(
            lambda frame, event, argument: calls.append(event) if len(calls) < 9 else None
        )
        yield
        sys.setprofile(None)

    return Work(lambda: rectified(layer(x)), inputs=(x, layer), context=context)


def garbage_collected(lab):
    """Garbage is not looked for during its own steps, as `timeit` does it."""
    x, layer = operands()

    @contextlib.contextmanager
    def context():
        gc.disable()
        yield
        gc.enable()

    return Work(lambda: rectified(layer(x)), inputs=(x, layer), context=context)


def set_by_each_build(lab):
    """Sets something that only its own steps go by."""
    x, layer = operands()
    CONFIG["rows at a time, of the last"] = 32

    def step():
        return torch.cat(
            [rectified(layer(rows)) for rows in x.split(CONFIG["rows at a time, of the last"])]
        )

    return Work(step, inputs=(x, layer))


# === first_after_restore
# --- twins
# Each step moves an average on, which is named as state and put back before each block.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.zeros(N, N)


def reference(lab):
    a, b, average = operands()
    return Work(lambda: average.mul_(0.9).add_(0.1 * (a @ b)), inputs=(a, b), state=average)


def first_after_restore(lab):
    a, b, average = operands()
    return Work(lambda: average.mul_(0.9).addmm_(a, b, alpha=0.1), inputs=(a, b), state=average)
