"""What steps return beside tensors, in a run of the command."""

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
