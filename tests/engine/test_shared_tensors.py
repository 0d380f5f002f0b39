"""Tensors between ranks arrive as they were, in memory that grows with them and is used again."""

import os

import torch

from gpulab.engine.ranks.shared_tensors import SharedTensors


def test_tensors_arrive_as_they_were():
    file = os.memfd_create("tensors")
    writer, reader = SharedTensors(file), SharedTensors(file)
    few = [torch.arange(3), torch.zeros(0, 4), torch.tensor(True)]
    many = [
        torch.randn(1000, 7).T,
        torch.randn(5, 1).expand(5, 9),
        torch.randn(3, dtype=torch.complex64),
        torch.randn(70).to(torch.bfloat16),
        torch.randint(9, (11,), dtype=torch.uint8),
        torch.ones(2, requires_grad=True),
    ]
    for sent in (few, many, few):
        came = reader.read(writer.write(sent))
        writer.write([torch.zeros(8)])  # what came is a copy
        assert len(came) == len(sent)
        for before, after in zip(sent, came, strict=True):
            assert (after.dtype, after.shape) == (before.dtype, before.shape)
            assert torch.equal(after, before)
