"""Samples of outputs: the same elements of every variant, wherever they lie, as events that the session can read."""

import random

import msgspec
import pytest
import torch

from gpulab.protocol.events import OutputSample
from gpulab.worker.checking.samples import output_samples

LARGE = 150_000_000


def sampled(*outputs):
    named = {f"variant {place}": output for place, output in enumerate(outputs)}
    return output_samples(named, 1e-4, random.Random(1))


@pytest.mark.parametrize("elements", [3, LARGE], ids=["few", "more than a hundred million"])
def test_they_can_be_read_however_large_the_output_is(elements):
    events = sampled([torch.ones(1, dtype=torch.uint8).expand(elements)])
    decoded = msgspec.json.decode(msgspec.json.encode(events), type=list[OutputSample])
    assert decoded == events
    assert decoded[0].elements == elements
    assert max(decoded[0].places) > elements // 2


def test_places_go_through_all_tensors_of_an_output_and_are_those_of_every_variant():
    numbers = torch.arange(100.0)
    whole, parts = sampled([numbers], [numbers[:10], numbers[10:].view(9, 10)])
    assert whole.places == parts.places
    assert whole.values == parts.values == [float(place) for place in whole.places]
    assert whole.number == parts.number


def test_what_is_not_finite_has_no_value():
    (event,) = sampled([torch.tensor([float("nan"), float("inf"), 1.0])])
    assert event.values == [None, None, 1.0]
