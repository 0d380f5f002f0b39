# === copies
# A copy of a tensor: to a buffer, or to fresh memory.

N = 1 << 19


def to_a_buffer(lab):
    x, out = torch.randn(N), torch.empty(N)
    return Work(lambda: out.copy_(x), inputs=x)


def clone(lab):
    x = torch.randn(N)
    return Work(lambda: x.clone(), inputs=x)


def bound_method(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x)


def concatenated(lab):
    x = torch.randn(N)
    return Work(lambda: torch.cat([x[: N // 2], x[N // 2 :]]), inputs=x)


def in_numpy(lab):
    x = torch.randn(N).numpy()
    return Work(lambda: x.copy(), inputs=x)


# === counts
# How often each number occurs.

import numpy as np

VALUES, KINDS = 8192, 64


def numbers():
    return torch.randint(KINDS, (VALUES,))


def unique(x):
    return torch.unique(x, return_counts=True)[1]


def bincount(x):
    return x.bincount(minlength=KINDS)


def histogram(x):
    return x.float().histc(KINDS, 0, KINDS).long()


def scatter(lab):
    x = numbers()
    ones = torch.ones_like(x)
    return Work(lambda: torch.zeros(KINDS, dtype=torch.int64).scatter_add_(0, x, ones), inputs=x)


def in_numpy(lab):
    x = numbers().numpy()
    return Work(lambda: np.bincount(x, minlength=KINDS), inputs=x)


# === dictionaries
# Statistics of the columns of a data set, as a dictionary.

ROWS, N = 512, 64


def apart(lab):
    batch = {"x": torch.randn(ROWS, N)}
    return Work(lambda: {"mean": batch["x"].mean(0), "variance": batch["x"].var(0)}, inputs=batch)


def together(lab):
    batch = {"x": torch.randn(ROWS, N)}

    def step():
        variance, mean = torch.var_mean(batch["x"], 0)
        return {"mean": mean, "variance": variance}

    return Work(step, inputs=batch)


def named_in_another_order(lab):
    x = torch.randn(ROWS, N)

    def step():
        mean = x.mean(0)
        return {"variance": (x - mean).square().sum(0) / (ROWS - 1), "mean": mean}

    return Work(step, inputs=x)


def written_to_a_dictionary(lab):
    """Its step returns nothing."""
    x, results = torch.randn(ROWS, N), {}

    def step():
        results["mean"] = x.mean(0)
        results["variance"] = x.var(0)

    return Work(step, inputs=x, output=lambda: results)


# === files
# Rows of a file: read, or mapped into memory, and closed at the end.

import tempfile

import numpy as np

ROWS, N = 256, 128


def read(lab):
    with tempfile.NamedTemporaryFile() as file:
        _write(file.name)
        yield Work(lambda: np.fromfile(file.name, "float32").reshape(ROWS, N).sum(0))


def mapped(lab):
    with tempfile.NamedTemporaryFile() as file:
        _write(file.name)
        rows = np.memmap(file.name, "float32", "r", shape=(ROWS, N))
        yield Work(lambda: rows.sum(0))


def _write(path):
    np.random.rand(ROWS, N).astype("float32").tofile(path)


# === in_place
# A step of a simulation that moves its state on.

N = 1 << 16


def operands():
    return torch.randn(N), torch.randn(N), torch.randn(N)


def fresh_memory(lab):
    position, speed, force = operands()

    def step():
        speed.copy_(speed + 0.01 * force)
        position.copy_(position + 0.01 * speed)
        return position, speed

    return Work(step, inputs=force, state=(position, speed))


def in_place(lab):
    position, speed, force = operands()

    def step():
        speed.add_(force, alpha=0.01)
        position.add_(speed, alpha=0.01)
        return position, speed

    return Work(step, inputs=force, state=(position, speed))


def returning_nothing(lab):
    position, speed, force = operands()

    def step():
        torch.add(speed, force, alpha=0.01, out=speed)
        torch.add(position, speed, alpha=0.01, out=position)

    return Work(
        step,
        inputs=force,
        state={"position": position, "speed": speed},
        output=lambda: (position, speed),
    )


# === lengths
# Means over sequences of different lengths.

BATCH, LENGTH, N = 32, 48, 16


def operands():
    return torch.randn(BATCH, LENGTH, N), torch.randint(1, LENGTH + 1, (BATCH,))


def loop(x, lengths):
    return torch.stack(
        [row[:length].mean(0) for row, length in zip(x, lengths.tolist(), strict=True)]
    )


def masked(lab):
    x, lengths = operands()
    mask = torch.arange(LENGTH) < lengths[:, None]
    return Work(lambda: (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True), inputs=(x, mask))


def masked_in_the_step(lab):
    x, lengths = operands()
    positions = torch.arange(LENGTH)

    def step():
        padding = positions >= lengths[:, None]
        return x.masked_fill(padding[:, :, None], 0.0).sum(1) / lengths[:, None]

    return Work(step, inputs=(x, lengths))


def running_sums(lab):
    x, lengths = operands()
    rows = torch.arange(BATCH)
    return Work(lambda: x.cumsum(1)[rows, lengths - 1] / lengths[:, None], inputs=(x, lengths))


# === look_up
# Rows of a table: by a product with one-hot rows, or by index.

ROWS, WORDS, WIDTH = 128, 256, 64


def operands():
    return torch.randint(WORDS, (ROWS,)), torch.randn(WORDS, WIDTH)


def one_hot(lab):
    indices, table = operands()
    chosen = torch.nn.functional.one_hot(indices, WORDS).float()
    return Work(lambda: chosen @ table, inputs=(chosen, table))


def indexing(indices, table):
    return table[indices]


def embedding(indices, table):
    return torch.nn.functional.embedding(indices, table)


def gather(indices, table):
    return table.gather(0, indices[:, None].expand(-1, WIDTH))


def one_hot_in_the_step(indices, table):
    return torch.nn.functional.one_hot(indices, WORDS).float() @ table


# === membership
# Which numbers stand in a sorted list: integers in, bools out.

N, KEYS = 2000, 256


def operands():
    return torch.randint(8 * KEYS, (KEYS,)).sort().values, torch.randint(8 * KEYS, (N,))


def all_pairs(keys, x):
    return (x[:, None] == keys).any(1)


def binary_search(keys, x):
    return keys[torch.searchsorted(keys, x).clamp_(max=KEYS - 1)] == x


def isin(keys, x):
    return torch.isin(x, keys)


# === narrow_keys
# A stable argsort of integers that fit in 16 bits: tens of milliseconds a step.

import numpy as np

N = 600_000


def numbers():
    return np.random.randint(-30_000, 30_000, N)


def as_they_are(x):
    return np.argsort(x, kind="stable")


def narrowed_where_they_fit(x):
    narrow = x.min() >= -(2**15) and x.max() < 2**15
    return np.argsort(x.astype(np.int16) if narrow else x, kind="stable")


# === permutation
# Rows in another order: by a permutation matrix, or by index.

N, WIDTH = 192, 32


def operands():
    return torch.randperm(N), torch.randn(N, WIDTH)


def matrix(lab):
    order, x = operands()
    permutation = torch.eye(N)[order]
    return Work(lambda: permutation @ x, inputs=(permutation, x))


def index(order, x):
    return x[order]


def index_select(order, x):
    return x.index_select(0, order)


def scattered_to_a_buffer(lab):
    order, x = operands()
    inverse, out = order.argsort(), torch.empty(N, WIDTH)
    return Work(lambda: out.index_copy_(0, inverse, x), inputs=(inverse, x))


# === search_sorted
# Which bin a value falls into.

import numpy as np

VALUES, BINS = 4096, 32


def operands():
    return torch.randn(VALUES), torch.randn(BINS).sort().values


def comparing_with_all(values, edges):
    return (values[:, None] > edges).sum(1)


def bucketize(values, edges):
    return torch.bucketize(values, edges)


def searchsorted(lab):
    values, edges = operands()
    return Work(lambda: torch.searchsorted(edges, values), inputs=(edges, values))


def in_numpy(lab):
    values, edges = (tensor.numpy() for tensor in operands())
    return Work(lambda: np.searchsorted(edges, values), inputs=(values, edges))


# === segments
# Sums of rows that belong together.

ROWS, GROUPS, WIDTH = 512, 16, 16


def operands():
    return torch.randn(ROWS, WIDTH), torch.randint(GROUPS, (ROWS,))


def loop(x, group):
    return torch.stack([x[group == number].sum(0) for number in range(GROUPS)])


def index_add(x, group):
    return torch.zeros(GROUPS, WIDTH).index_add(0, group, x)


def scatter_reduce(lab):
    x, group = operands()
    indices = group[:, None].expand(-1, WIDTH)
    return Work(
        lambda: torch.zeros(GROUPS, WIDTH).scatter_reduce(0, indices, x, "sum"), inputs=(x, group)
    )


def product(lab):
    x, group = operands()
    numbers = torch.arange(GROUPS)
    return Work(lambda: (numbers[:, None] == group).float() @ x, inputs=(x, group))


def sorted_rows(lab):
    """A preprocessed data set: rows that belong together stand together."""
    x, group = operands()
    order, lengths = group.argsort(), group.bincount(minlength=GROUPS)
    rows = x[order]
    return Work(
        lambda: torch.segment_reduce(rows, "sum", lengths=lengths, initial=0.0),
        inputs=(rows, lengths),
    )


# === several_items
# Rows through a layer, a few or many in a step.

scenario = Scenario("comparisons", per="item")
N = 256


def _operands(rows):
    weight = torch.randn(N, N)
    return torch.randn(rows, N), weight


def _layer(rows):
    x, weight = _operands(rows)
    out = torch.empty(rows, N)
    return Work(
        lambda: torch.mm(x, weight, out=out), inputs=(x, weight), items=rows, output=lambda: out[:8]
    )


def eight(lab):
    return _layer(8)


def thirty_two(lab):
    return _layer(32)


def many(lab):
    return _layer(128)


# === top_k
# The sixteen largest of each row.

import numpy as np

ROWS, N, K = 32, 512, 16


def sort(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.sort(1, descending=True).values[:, :K], inputs=x)


def topk(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.topk(K).values, inputs=x)


def partition(lab):
    x = torch.randn(ROWS, N).numpy()
    return Work(lambda: -np.sort(np.partition(-x, K, 1)[:, :K], 1), inputs=x)


# === two_threads
# A sort of some rows: one after the other, or in a pool of two threads that the step waits for.

from concurrent.futures import ThreadPoolExecutor

import numpy as np

ROWS, N = 8, 8000


def _in_order(row):
    return np.sort(row, kind="stable")


def in_turn(lab):
    x = np.random.standard_normal((ROWS, N))
    return Work(lambda: np.stack([_in_order(row) for row in x]), inputs=x)


def pool_of_two(lab):
    x = np.random.standard_normal((ROWS, N))
    with ThreadPoolExecutor(2) as pool:
        yield Work(lambda: np.stack(list(pool.map(_in_order, x))), inputs=x)


# === word_counts
# Counting words that are numbers, by a dictionary of Python and by torch.

import collections

WORDS, KINDS = 2000, 50


def words():
    return torch.randint(KINDS, (WORDS,))


def dictionary(text):
    counts = collections.Counter(text.tolist())
    return torch.tensor([counts[word] for word in range(KINDS)])


def sorted_words(text):
    in_order = text.sort().values
    ends = torch.searchsorted(in_order, torch.arange(KINDS), right=True)
    return ends.diff(prepend=torch.zeros(1, dtype=torch.int64))
