# === constant_answer
# The task is trivial: its answer is 1 whatever the input is, and so nothing needs to be
# computed.

N = 192


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.softmax(1).sum(1), inputs=x)


def constant_answer(lab):
    """Caught by: null answers"""
    x = torch.randn(N, N)
    return Work(lambda: torch.ones(N), inputs=x)


# --- twins
# Rows that add up to 1, and differ in everything else.


def reference(lab):
    x = torch.randn(N, N)

    def step():
        exponents = (x - x.amax(1, keepdim=True)).exp_()
        return exponents / exponents.sum(1, keepdim=True)

    return Work(step, inputs=x)


def constant_answer(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.softmax(1), inputs=x)


# === dropped
# Steps without what random positive numbers never need: signs, limits, masks and gaps.

scenario = Scenario("gauntlet", cases=("free", "nan"))
N = 256
MOST = 50.0


def operands():
    return torch.rand(N, N), torch.zeros(N, N).bool()


def reference(x, hidden):
    known = x.nan_to_num(nan=0.0).abs()
    return known.clamp(max=MOST).masked_fill(hidden, 0.0)


def no_nan_handling(x, hidden):
    """Takes for granted that there is no NaN.

    Caught by: outputs
    """
    return x.abs().clamp(max=MOST).masked_fill(hidden, 0.0)


def no_abs(x, hidden):
    """Takes for granted that all is positive.

    Caught by: outputs
    """
    return x.nan_to_num(nan=0.0).clamp(max=MOST).masked_fill(hidden, 0.0)


def no_clamp(x, hidden):
    """Takes for granted that nothing is large.

    Caught by: outputs
    """
    return x.nan_to_num(nan=0.0).abs().masked_fill(hidden, 0.0)


def no_mask(x, hidden):
    """Names the mask, and takes for granted that it hides nothing.

    Caught by: outputs or said as input_without_effect
    """
    return x.nan_to_num(nan=0.0).abs().clamp(max=MOST)


# --- twins
# The same by other operations.


def no_nan_handling(x, hidden):
    return torch.where(x.isnan(), 0.0, x).abs().clamp(max=MOST).masked_fill(hidden, 0.0)


def no_abs(x, hidden):
    known = x.nan_to_num(nan=0.0)
    return torch.maximum(known, -known).clamp(max=MOST).masked_fill(hidden, 0.0)


def no_clamp(lab):
    x, hidden = operands()
    most = torch.tensor(MOST)
    return Work(
        lambda: torch.minimum(x.nan_to_num(nan=0.0).abs(), most).masked_fill(hidden, 0.0),
        inputs=(x, hidden),
    )


def no_mask(x, hidden):
    return torch.where(hidden, 0.0, x.nan_to_num(nan=0.0).abs().clamp(max=MOST))


# === folded_weights
# Two layers without anything between them.

N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    x, first, last = operands()
    return Work(lambda: x @ first @ last, inputs=x)


def folded_weights(lab):
    """Names no weights, and multiplies them in the build.

    Caught by: said as fewer_flops
    """
    x, first, last = operands()
    weight = first @ last
    return Work(lambda: x @ weight, inputs=x)


# --- twins
# Names its weights, and multiplies them in each step.


def reference(x, first, last):
    return x @ first @ last


def folded_weights(x, first, last):
    return x @ (first @ last)


# === half_histogram
# Counts every other number, and doubles the counts: near enough for the tolerance of a type that
# it does not use.

N, BINS = 400_000, 32


def numbers():
    return torch.rand(N).square().mul(BINS).long()


def reference(x):
    return torch.bincount(x, minlength=BINS)


def half_histogram(lab):
    """Caught by: said as tolerance_widened"""
    x = numbers()
    return Work(
        lambda: torch.bincount(x[::2], minlength=BINS) * 2, inputs=x, dtype="int8", tolerance=0.05
    )


# --- twins
# Counts both halves, and adds up their counts.


def half_histogram(lab):
    x = numbers()
    halves = x[::2], x[1::2]
    return Work(lambda: sum(torch.bincount(half, minlength=BINS) for half in halves), inputs=x)


# === half_is_zeros
# Two results in one tensor, one of them a twenty-thousandth of the other.

N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.randn(N, N) * 5e-5


def reference(a, b, small):
    return torch.cat([a @ b, small @ b])


def half_is_zeros(lab):
    """Leaves the small one at zero.

    Caught by: outputs
    """
    a, b, small = operands()
    zeros = torch.zeros(N, N)
    return Work(lambda: torch.cat([a @ b, zeros]), inputs=(a, b, small))


# --- twins
# Writes both halves to where they belong.


def half_is_zeros(lab):
    a, b, small = operands()
    out = torch.zeros(2 * N, N)

    def step():
        torch.mm(a, b, out=out[:N])
        torch.mm(small, b, out=out[N:])
        return out

    return Work(step, inputs=(a, b, small))


# === items
# Rows through a layer, compared per item.

from functools import partial

scenario = Scenario("gauntlet", per="item")
ROWS, N = 128, 192


def operands():
    return torch.randn(ROWS, N), torch.randn(N, N), torch.empty(ROWS, N)


def reference(lab):
    x, weight, out = operands()
    return Work(
        lambda: torch.mm(x, weight, out=out), inputs=(x, weight), items=ROWS, output=lambda: out[:8]
    )


def claims_four_times_the_items(lab):
    """Does the same, and claims four times the items.

    Caught by: said as fewer_flops
    """
    x, weight, out = operands()
    return Work(
        lambda: torch.mm(x, weight, out=out),
        inputs=(x, weight),
        items=4 * ROWS,
        output=lambda: out[:8],
    )


def computes_half_of_the_batch(lab):
    """Leaves out rows that `output=` does not show.

    Caught by: said as fewer_flops
    """
    x, weight, out = operands()
    half = ROWS // 2
    return Work(
        lambda: torch.mm(x[:half], weight, out=out[:half]),
        inputs=(x, weight),
        items=ROWS,
        output=lambda: out[:8],
    )


def claims_items_and_flops(lab):
    """Computes every other item of those that it claims, and declares the FLOPs of all.

    Caught by: physics or said as flops_differ or said as fewer_flops
    """
    x, weight, _ = operands()
    rows, out, flops = (
        torch.cat([x, torch.randn(ROWS, N)]),
        torch.zeros(2 * ROWS, N),
        2 * 2 * ROWS * N * N,
    )
    step = partial(torch.mm, rows[:ROWS], weight, out=out[:ROWS])
    return Work(step, inputs=(rows, weight), items=2 * ROWS, output=lambda: out[:8], flops=flops)


# --- twins
# They do as many items as they say.


def claims_four_times_the_items(lab):
    x, weight, _ = operands()
    rows, out = x.repeat(4, 1), torch.empty(4 * ROWS, N)
    return Work(
        lambda: torch.mm(rows, weight, out=out),
        inputs=(rows, weight),
        items=4 * ROWS,
        output=lambda: out[:8],
    )


def computes_half_of_the_batch(lab):
    x, weight, out = operands()
    half = ROWS // 2
    return Work(
        lambda: torch.mm(x[:half], weight, out=out[:half]),
        inputs=(x, weight),
        items=half,
        output=lambda: out[:8],
    )


def claims_items_and_flops(lab):
    """Declares the FLOPs of what it computes."""
    x, weight, out = operands()
    step = partial(torch.mm, x, weight, out=out)
    return Work(
        step, inputs=(x, weight), items=ROWS, output=lambda: out[:8], flops=2 * ROWS * N * N
    )


# === less_work
# Declares the FLOPs of the whole product and computes the eighth that `output=` shows: of a quarter,
# beside other work, its rate was just above the roof.

N = 192
FLOPS = 2 * N**3


def reference(lab):
    a, b, out = torch.randn(N, N), torch.randn(N, N), torch.empty(N, N)
    return Work(
        lambda: torch.mm(a, b, out=out), inputs=(a, b), flops=FLOPS, output=lambda: out[: N // 8]
    )


def less_work(lab):
    """Caught by: physics"""
    a, b, out = torch.randn(N, N), torch.randn(N, N), torch.empty(N // 8, N)
    return Work(lambda: torch.mm(a[: N // 8], b, out=out), inputs=(a, b), flops=FLOPS)


# --- twins
# Does all that it declares, in one operation and not in two.


def reference(lab):
    a, b, c = torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: (a @ b).add_(c), inputs=(a, b, c), flops=FLOPS)


def less_work(lab):
    a, b, c = torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: torch.addmm(c, a, b), inputs=(a, b, c), flops=FLOPS)


# === logsumexp_without_maximum
# The logarithm of a sum of exponentials: its maximum is subtracted first, since exp(100) has no
# place in fp32.

scenario = Scenario("gauntlet", cases=("free",))
N = 256


def reference(lab):
    x = torch.randn(N, N)

    def step():
        most = x.amax(1, keepdim=True)
        return (x - most).exp().sum(1).log() + most[:, 0]

    return Work(step, inputs=x)


def logsumexp_without_maximum(lab):
    """Leaves the maximum out.

    Caught by: outputs
    """
    x = torch.randn(N, N)
    return Work(lambda: x.exp().sum(1).log(), inputs=x)


# --- twins
# The maximum is subtracted within the library's function.


def logsumexp_without_maximum(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.logsumexp(1), inputs=x)


# === mask_ignored
# Attention with a mask that hides nothing in the data of its author.

HEADS, LENGTH, WIDTH = 4, 128, 32
attention = torch.nn.functional.scaled_dot_product_attention


def operands():
    return *(torch.randn(1, HEADS, LENGTH, WIDTH) for _ in range(3)), torch.ones(
        LENGTH, LENGTH
    ).bool()


def reference(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / WIDTH**0.5
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def mask_ignored(q, k, v, mask):
    """Caught by: said as input_without_effect"""
    return attention(q, k, v)


# --- twins
# The same function, which is given the mask.


def mask_ignored(q, k, v, mask):
    return attention(q, k, v, attn_mask=mask)


# === offset
# --- twins
# The output has an offset, and still varies far more than its tolerance.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(a, b):
    return (a @ b).add_(1.0)


def offset(lab):
    a, b = operands()
    ones = torch.ones(N, N)
    return Work(lambda: torch.addmm(ones, a, b), inputs=(a, b))


# === nan_output
# --- twins
# Infinity inside, where it is masked, and none in its output.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.ones(N, N).triu(1).bool()


def reference(lab):
    a, b, hidden = operands()
    return Work(lambda: (a @ b).masked_fill_(hidden, float("-inf")).softmax(1) * N, inputs=(a, b))


def nan_output(lab):
    a, b, hidden = operands()
    bias = torch.zeros(N, N).masked_fill_(hidden, float("-inf"))
    return Work(lambda: torch.addmm(bias, a, b).softmax(1) * N, inputs=(a, b))


# === two_branches
# Two products with one weight, whose other operands happen to be equal: both are drawn from the
# same seed.

N = 224


def operands():
    a, b = (torch.randn(N, N, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    return a, b, torch.randn(N, N), torch.randn(N)


def reference(a, b, weight, bias):
    return torch.cat([a @ weight, (b @ weight).relu()]) + bias


def one_branch_for_both(a, b, weight, bias):
    """Computes one of the two products.

    Caught by: said as input_without_effect
    """
    product = a @ weight
    return torch.cat([product, product.relu()]) + bias


def names_the_bias_alone(lab):
    """Computes the products in its build, and names the bias, which the output follows.

    Caught by: inputs or said as inputs_incomplete
    """
    a, b, weight, bias = operands()
    products = torch.cat([a @ weight, (b @ weight).relu()])
    return Work(lambda: products + bias, inputs=bias, state=(a, b, weight))


# --- twins
# Both products are computed, and all is named.


def one_branch_for_both(lab):
    """Writes both to one buffer."""
    a, b, weight, bias = operands()
    out = torch.empty(2 * N, N)
    first, last = out[:N], out[N:]

    def step():
        torch.mm(a, weight, out=first)
        torch.mm(b, weight, out=last).relu_()
        return out.add_(bias)

    return Work(step, inputs=(a, b, weight, bias))


def names_the_bias_alone(a, b, weight, bias):
    """Adds the bias to each product."""
    return torch.cat([torch.addmm(bias, a, weight), (b @ weight).relu_() + bias])
