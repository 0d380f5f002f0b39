# === caches
# A small product that is remembered.

import time

N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(a, b):
    return a @ b


def recomputed_after_1_ms(lab):
    """Computes only if the last call was over a millisecond ago, as what is kept for a while is.

    Caught by: timed steps or outputs
    """
    a, b = operands()
    results, ended = [], [0.0]

    def step():
        if time.perf_counter() - ended[0] > 1e-3:
            results[:] = [a @ b]
        copy = results[0].clone()
        ended[0] = time.perf_counter()
        return copy

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


# --- twins
# They look at clocks and values, and compute each time.

import warnings

RESULTS = {}


def recomputed_after_1_ms(lab):
    """Counts its pauses of a millisecond."""
    a, b = operands()
    pauses, ended = [0], [0.0]

    def step():
        pauses[0] += time.perf_counter() - ended[0] > 1e-3
        result = a @ b
        ended[0] = time.perf_counter()
        return result

    return Work(step, inputs=(a, b))


def nan_looked_for(lab):
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


def filled_by_the_baseline(a, b):
    """Keeps its result in a dictionary of the file."""
    RESULTS["last"] = a @ b
    return RESULTS["last"]


# === memoised_by_equality
# A product that is remembered by all of its operands: large enough that reading them takes much less than multiplying them, on a CPU that multiplies fast too.

N = 512


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(a, b):
    return a @ b


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


# --- twins


def memoised_by_equality(a, b):
    """Compares its inputs with each other, of which a square needs one only."""
    return a.matrix_power(2) if torch.equal(a, b) else a @ b


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
    """Draws it once, in the build.

    Caught by: outputs or timed steps
    """
    x = torch.randn(N, N)
    kept = torch.rand(N, N) < 0.5
    return Work(lambda: x * kept, inputs=x)


# --- twins
# They draw the same numbers in each step.


def mask_kept_from_the_build(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.where(torch.rand(N, N) < 0.5, 0.0), inputs=x)


def mask_in_a_buffer(lab):
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


def reference(rows, columns, values, x):
    return torch.zeros(N, WIDTH).index_add_(0, rows, values[:, None] * x[columns])


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


def order_made_in_build(rows, columns, values, x):
    order = rows.argsort(stable=True)
    lengths = rows.bincount(minlength=N)
    return torch.segment_reduce(
        values[order, None] * x[columns[order]], "sum", lengths=lengths, initial=0.0
    )


def csr_made_in_build(rows, columns, values, x):
    matrix = torch.sparse_coo_tensor(
        torch.stack([rows, columns]), values, (N, N), check_invariants=False
    )
    return matrix.to_sparse_csr() @ x


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


def _rectified(x):
    return x.relu()


def reference(x, layer):
    return _rectified(layer(x))


def configured_for_all(lab):
    """Goes by a copy of the configuration."""
    x, layer = operands()
    config = {**CONFIG, "rows at a time": 16}

    def step():
        return torch.cat([_rectified(layer(rows)) for rows in x.split(config["rows at a time"])])

    return Work(step, inputs=(x, layer))


def hooked_modules(lab):
    """A hook on its own module."""
    x, layer = operands()
    layer.register_forward_hook(lambda module, arguments, output: _rectified(output))
    return Work(lambda: layer(x), inputs=(x, layer))


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

    return Work(lambda: _rectified(layer(x)), inputs=(x, layer), context=context)


def garbage_collected(lab):
    """Garbage is not looked for during its own steps, as `timeit` does it."""
    x, layer = operands()

    @contextlib.contextmanager
    def context():
        gc.disable()
        yield
        gc.enable()

    return Work(lambda: _rectified(layer(x)), inputs=(x, layer), context=context)


def set_by_each_build(lab):
    """Sets something that only its own steps go by."""
    x, layer = operands()
    CONFIG["rows at a time, of the last"] = 32

    def step():
        return torch.cat(
            [_rectified(layer(rows)) for rows in x.split(CONFIG["rows at a time, of the last"])]
        )

    return Work(step, inputs=(x, layer))


# === average_in_one_call
# --- twins
# Each step moves an average on, which is named as state and put back before each block.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.zeros(N, N)


def reference(lab):
    a, b, average = operands()
    return Work(lambda: average.mul_(0.9).add_(0.1 * (a @ b)), inputs=(a, b), state=average)


def average_in_one_call(lab):
    a, b, average = operands()
    return Work(lambda: average.mul_(0.9).addmm_(a, b, alpha=0.1), inputs=(a, b), state=average)
