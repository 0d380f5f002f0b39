"""What steps return beside tensors, and memory that nobody may write to, in runs of the command."""

import pytest

from gpulab.core.statuses import Status

VALUES = '''
"""Many kinds of values in one output, computed in two ways."""
import collections
import dataclasses
import struct
import numpy as np
import torch
from gpulab import Scenario, Work
scenario = Scenario("values")
N = 4000

@dataclasses.dataclass
class Both:
    mean: torch.Tensor
    words: set

def operands():
    x = torch.randn(N)
    return x, x.numpy().tobytes(), [f"w{value % 50}" for value in range(N)]

@scenario.variant
def one_way(lab):
    x, message, words = operands()
    return Work(
        lambda: {
            "descending": np.sort(x.numpy())[::-1],
            "numbers": (x.numpy().mean(), x.numpy().argmax(), x.square().mean().item()),
            "both": Both(x.mean(), set(words)),
            "counts": collections.Counter(words),
            "message": np.frombuffer(message, dtype=np.float32),
            "hidden": x.masked_fill(x < 0, -torch.inf),
        },
        inputs=x,
    )

def other_way(x, message, words):
    return {
        "message": np.array(struct.unpack(f"{N}f", message), dtype=np.float32),
        "numbers": (float(x.sum()) / N, int(x.argmax()), float(torch.dot(x, x)) / N),
        "hidden": torch.where(x < 0, -torch.inf, x),
        "descending": x.sort(descending=True).values,
        "both": {"mean": x.sum() / N, "words": set(dict.fromkeys(words))},
        "counts": collections.Counter(sorted(words)),
    }

@scenario.variant
def another_way(lab):
    x, message, words = operands()
    return Work(lambda: other_way(x, message, words), inputs=x)

@scenario.variant
def other_words(lab):
    x, message, words = operands()
    return Work(lambda: other_way(x, message, ["v", *words[1:]]), inputs=x)
'''
CACHE = '''
"""A step of decoding, which writes its place in a cache."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("cache")
N, LENGTH = 64, 32

def operands():
    cache, token = torch.randn(LENGTH, N), torch.randn(N)

    def forward():
        cache[LENGTH // 2] = token.square()
        return cache.mean(0)

    return cache, token, forward

@scenario.variant
def eager(lab):
    cache, token, forward = operands()
    return Work(forward, inputs=token, state=cache)

@scenario.variant
def warmed(lab):
    """Its build takes steps, as the capture of a graph does."""
    cache, token, forward = operands()
    for _ in range(3):
        forward()
    return Work(forward, inputs=token, state=cache)

@scenario.variant
def forgets(lab):
    """Its steps return what the others do and write no cache."""
    cache, token, forward = operands()
    for _ in range(3):
        forward()
    rest = torch.ones(LENGTH, 1)
    rest[LENGTH // 2] = 0
    return Work(lambda: ((cache * rest).sum(0) + token.square()) / LENGTH, inputs=token, state=cache)
'''


@pytest.fixture(scope="module")
def values(module_lab):
    return module_lab.run(module_lab.write("values.py", VALUES), "--smoke")


def test_values_of_every_kind_are_compared(values):
    for name in ("one_way", "another_way"):
        assert (values.variant(name)["status"], values.variant(name)["reason"]) == (Status.OK, None)
        assert values.variant(name)["unchecked"] is None
    assert values.run["failures"] == []


def test_another_word_is_wrong(values):
    assert values.code == 4
    assert values.variant("other_words")["status"] == Status.WRONG
    assert values.variant("other_words")["reason"]["code"] == "element_counts_differ"


def test_state_that_a_warm_up_has_written_is_no_difference_and_state_not_written_is(module_lab):
    finished = module_lab.run(module_lab.write("cache.py", CACHE), "--smoke")
    assert finished.variant("warmed")["status"] == Status.OK
    assert finished.variant("forgets")["status"] == Status.WRONG
    assert finished.variant("forgets")["reason"]["code"] == "state_not_updated"
