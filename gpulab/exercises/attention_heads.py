"""Attention heads: attend with all heads of a padded batch at once, in one operation.

`step(query, key, value, lengths)` is the attention of a transformer: of a batch of sequences, each
with some heads. The sequences are padded to a common length, and `lengths` says how many keys of
each are real, at least one; the others get no weight.

Each head of each sequence goes through products, a mask and a softmax of its own. How many
operations is that for a batch of 16 with 8 heads, and how large are they? How often is a matrix of
scores written to memory and read again until its head is done, and which of these passes does the
result need? Sequences and heads are two dimensions of one tensor, and `@` takes stacks of matrices
of any number of dimensions; for all of attention torch has one operation as well. What does that
want as a mask, and of which shape, so that the mask of a sequence is not stored once for each head
and query?

Lessons that help: batched_matmul (one product for all heads), small_kernels (passes over the
scores).

Rules: the result must be that of the function as it is here, within the tolerance of float32, for
any batch, number of heads, queries, keys and channels. The check has sizes that are not shown:
fewer queries than keys, a single query, odd numbers of channels, an empty batch, memory that is not
contiguous. Everything in torch may be used; lower precision may not. The inputs must stay as they
are, and a result must stay what it is when the function is called again.
"""

import torch

from gpulab import Scenario, Work
from gpulab.engine.build.exercise import called, judged_step, sizes

scenario = Scenario(
    topic="exercises",
    params={"batch": 16, "heads": 16, "length": 256, "channels": 64},
    cpu={"batch": 24, "heads": 8, "length": 16, "channels": 16},
    smoke={"batch": 2, "heads": 4, "length": 16, "channels": 8},
    fail_below=5.0,
)


def step(query, key, value, lengths):
    """Returns softmax(query key^T / sqrt(channels)) value for each head, over the first lengths[i]
    keys of batch i.
    """
    result = torch.empty_like(query)
    places = torch.arange(key.shape[2], device=key.device)
    for i in range(query.shape[0]):
        for head in range(query.shape[1]):
            scores = query[i, head] @ key[i, head].T / query.shape[3] ** 0.5
            scores = scores.masked_fill(places >= lengths[i], float("-inf"))
            result[i, head] = torch.softmax(scores, dim=1) @ value[i, head]
    return result


@scenario.variant
def given(lab, batch, heads, length, channels):
    """The function as it is handed out."""
    return _judged(step, _cases(lab, batch, heads, length, channels))


@scenario.variant
def attempt(lab, batch, heads, length, channels):
    """The function of the file that is judged."""
    return _judged(judged_step(), _cases(lab, batch, heads, length, channels))


def _cases(lab, batch, heads, length, channels):
    """The advertised size, two odd ones whose heads lie beside their channels, a single query, and
    an empty batch.
    """
    draw = sizes(lab)
    few, keys, odd = draw(2, 6), draw(9, 30), 2 * draw(2, 10) + 1
    shapes = [
        (batch, heads, length, length, channels),
        *[(2, 3, few, keys, odd)] * 2,
        (1, 2, 1, keys, 8),
        (0, 2, 3, 4, 8),
    ]
    return [
        (
            _heads(lab, b, h, n, c),
            _heads(lab, b, h, m, c),
            _heads(lab, b, h, m, c),
            torch.rand(b, device=lab.device),
        )
        for b, h, n, m, c in shapes
    ][::-1]  # the advertised size last: what a call left undone is seen


def _heads(lab, batch, heads, length, channels):
    """As a layer leaves them that computes all heads at once: batch, length, heads, channels in
    memory.
    """
    return torch.randn(batch, length, heads, channels, device=lab.device).transpose(1, 2)


def _judged(function, cases):
    def step():
        # Lengths are made anew of numbers, which the lab can change: whole numbers it would leave
        # as they are.
        return [
            called(
                function,
                (query, key, value, (share * key.shape[2]).long().clamp_(0, key.shape[2] - 1) + 1),
                tuple(query.shape),
            )
            for query, key, value, share in cases
        ]

    return Work(
        step,
        flops=sum(4 * query.numel() * key.shape[2] for query, key, _, _ in cases),
        dtype="fp32",
        inputs=cases,
    )
