"""What two sides of a comparison return, held against each other."""

import copy
import dataclasses
import datetime
import enum
from collections import Counter, deque
from concurrent.futures import Future

import numpy as np
import pytest
import torch

from gpulab.engine.sides.outputs import disagreement, leaves_of, other_dtypes


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Both:
    mean: object
    std: object


def done(value):
    """A future with its value."""
    future = Future()
    future.set_result(value)
    return future


FLOATS = np.arange(6, dtype=np.float32)
ALIKE = {
    "a loss": (0.1234567, 0.1234567 * (1 + 5e-8)),
    "a NumPy scalar": (np.float64(0.5), 0.5),
    "members of NumPy": ({"a", 3}, {np.str_("a"), np.int64(3)}),
    "keys of NumPy": ({"a": 1, 3: 2}, {np.str_("a"): 1, np.int64(3): 2}),
    "texts of NumPy": (["a"], list(np.array(["a"]))),
    "a whole number": (3, 3.0),
    "keys in another order": ({"loss": 1.0, "acc": [2]}, {"acc": [2], "loss": 1.0}),
    "counts in another order": (Counter("abca"), Counter("caab")),
    "a reversed view": (FLOATS[::-1], FLOATS[::-1].copy()),
    "sparse": (torch.eye(3).to_sparse(), torch.eye(3)),
    "bfloat16": (torch.ones(3).bfloat16(), torch.ones(3).bfloat16()),
    "infinities": (np.array([1, np.inf, -np.inf]), np.array([1, np.inf, -np.inf])),
}
DIFFERENT = {
    "numbers": (0.5, 0.5001),
    "sets": ({"a", "b"}, {"a", "c"}),
    "enums": (Colour.RED, Colour.BLUE),
    "dates": (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    "deques": (deque([1, 2]), deque([2, 1])),
    "dataclasses": (Both(1, "x"), Both(1, "y")),
    "texts in an array": (np.array(["a", "b"]), np.array(["a", "c"])),
    "futures": (done(1), done(2)),
    "keys": ({1: 5, 2: 6}, {1: 5, 3: 6}),
    "one element": (np.ones(100, "f4"), np.where(np.arange(100) == 7, 1.0015, 1).astype("f4")),
    "shapes": (FLOATS, FLOATS.reshape(2, 3)),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_the_same_in_another_form_agrees(kind):
    one, other = ALIKE[kind]
    assert disagreement(leaves_of(one), leaves_of(other)) == ""


@pytest.mark.parametrize("kind", DIFFERENT)
def test_every_kind_of_value_is_compared(kind):
    one, other = DIFFERENT[kind]
    assert disagreement(leaves_of(copy.copy(one)), leaves_of(one)) == ""
    assert disagreement(leaves_of(one), leaves_of(other))


def test_a_float_of_double_precision_is_held_to_it():
    near = leaves_of(0.1), leaves_of(0.1 * (1 + 5e-8))
    assert disagreement(*near, "float32") == ""
    assert disagreement(*near, "float64") == "0.100000005 became 0.1"


def test_the_worst_element_is_named():
    one = np.ones((2, 3), dtype=np.float32)
    other = one.copy()
    other[1, 2] = 4
    assert disagreement(leaves_of(other), leaves_of(one)).endswith("element [1, 2]: 1 became 4")


def test_one_element_is_said_where_the_norm_of_all_allows_it():
    one = np.ones(10**6, dtype=np.float32)
    other = one.copy()
    other[5] += 0.09
    said = disagreement(leaves_of(other), leaves_of(one))
    assert said == "one element is off by more than rounding; element [5]: 1 became 1.09"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([1, 2], [1, 2, 3], "a list of 2 became a list of 3"),
        ([1, 2], {1: 2}, "a list of 2 became a dict of 1"),
        ("a", np.ones(2), "'a' became an array of shape (2,)"),
        ("x" * 90 + "old", "x" * 90 + "new", f"from character 80 on {'x' * 10 + 'old'!r} became"),
    ],
)
def test_what_differs_is_named(before, after, said):
    assert disagreement(leaves_of(after), leaves_of(before)).startswith(said)


def test_another_dtype_is_said_of_outputs_that_agree():
    before, after = (leaves_of({"a": np.ones(3, dtype=kind)}) for kind in ("f8", "f4"))
    assert disagreement(after, before) == ""
    assert other_dtypes(after, before) == "float64 became float32"
    assert other_dtypes(after, after) == ""
