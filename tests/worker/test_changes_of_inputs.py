"""Inputs that are matched with the baseline's, and new values that are alike in both."""

import random

import pytest
import torch

from gpulab.worker.building import tensors as t
from gpulab.worker.checking import changes
from gpulab.worker.checking.matching import Memory, Relation, identity, match
from gpulab.worker.process.errors import RefusedError

torch.manual_seed(0)
A = torch.randn(32, 48)


def relation_of(tensor, tolerance=1e-4, baseline=A):
    return match([Memory(baseline)], [tensor], tolerance).inputs[0].relation


RELATIONS = {
    "itself": (A.clone(), Relation.SAME),
    "a view in another layout": (A.t().contiguous().t(), Relation.SAME),
    "another shape": (A.reshape(-1), Relation.SAME),
    "quantized": ((A * 127 / A.abs().max()).round().to(torch.int8), Relation.SCALED),
    "twice": (A.repeat(2, 1), Relation.REPEATED),
    "with more rows": (torch.cat([A, torch.randn(7, 48)]), Relation.PREFIX),
    "fewer rows": (A[:8], Relation.PREFIX),
    "transposed": (A.t().contiguous(), Relation.REORDERED),
    "nothing of it": (torch.randn(48, 33), Relation.OTHER),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_an_input_is_known_by_its_values(name):
    tensor, relation = RELATIONS[name]
    assert relation_of(tensor) == relation


def test_lower_precision_holds_the_same_values_within_its_tolerance():
    assert relation_of(A.bfloat16(), 2e-2) == Relation.SAME
    assert relation_of(A.to(torch.float8_e4m3fn), 1e-1) == Relation.SAME


@pytest.mark.parametrize(
    ("inputs", "code"),
    [([torch.ones(1)], "inputs_too_small"), ([torch.randn(32, 48)], "inputs_differ"), ([A * 0], "inputs_differ")],
)
def test_inputs_that_are_not_the_baselines_are_refused(inputs, code):
    with pytest.raises(RefusedError) as raised:
        match([Memory(A)], inputs, 1e-4)
    assert raised.value.finding.code == code


def test_inputs_in_another_order_and_more_of_them_are_matched():
    b = torch.randn(16)
    matching = match([Memory(A), Memory(b)], [b, torch.randn(5), A], 1e-4)
    assert [matched.index for matched in matching.inputs] == [1, -1, 0]
    assert matching.missing == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.uint8, torch.float8_e4m3fn])
@pytest.mark.parametrize("number", range(3))
def test_every_change_can_be_undone_and_keeps_values_valid(dtype, number):
    tensor = torch.randint(1, 100, (6, 8)).to(dtype)
    before = tensor.clone()
    change = changes.everything(random.Random(1))[number]
    undo = change.made([tensor], identity([tensor]))
    assert t.changed([tensor], [before])
    if not dtype.is_complex:
        assert 0 <= tensor.float().min() <= tensor.float().max() <= before.float().max()
    undo()
    assert not t.changed([tensor], [before])


@pytest.mark.parametrize("name", [name for name, (_, relation) in RELATIONS.items() if relation != Relation.OTHER])
def test_a_change_that_fits_does_the_same_to_both(name):
    variant, base = RELATIONS[name][0].clone(), A.clone()
    matching = match([Memory(base)], [variant], 1e-4)
    draw = random.Random(2)
    fitting = [
        change for change in (*changes.everything(draw), *changes.late_element([base], draw)) if change.fits(matching)
    ]
    assert fitting
    for change in fitting:
        undone = [change.made([base], identity([base])), change.made([variant], matching)]
        assert relation_of(variant, 3e-2, base) == RELATIONS[name][1]
        for undo in undone:
            undo()


def test_offsets_and_numbers_beside_floats_stay_as_they_are():
    offsets, labels, values = torch.arange(9), torch.tensor([3, 1, 2]), torch.rand(5)
    for change in changes.everything(random.Random(3)):
        change.make([offsets], identity([offsets]))
        change.make([values, labels], identity([values, labels]))
    assert offsets.tolist() == list(range(9))
    assert labels.tolist() == [3, 1, 2]


def test_a_late_element_is_one_element_near_the_end():
    tensor = torch.randn(1000)
    before = tensor.clone()
    for change in changes.late_element([tensor], random.Random(4)):
        undo = change.made([tensor], identity([tensor]))
        (place,) = (tensor != before).nonzero().flatten().tolist()
        assert place >= 700
        undo()
    assert torch.equal(tensor, before)
