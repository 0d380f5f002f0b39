"""Gradient accumulation: pay with time for a batch that does not fit, not the other way round.

What training keeps for its backward pass grows with the rows that go through the model at once. Cut the batch into
micro-batches, add up their gradients, and take one optimizer step: the gradient is the same, and only the activations
of one micro-batch are ever kept. The lab compares the gradients, and the figure beside each variant is what is kept.

It is a way to fit, and never a way to be faster. The arithmetic is the same and comes in smaller pieces, each with
its launches and with every weight and every gradient read once more; how much that costs depends on how far a
micro-batch still fills the device. On a CPU small ones cost two to three times as much, on a large GPU more.

One of the sources says to increase the batch size when memory runs out. That is backwards: a larger batch needs more.
When it runs out, accumulate (or recompute, or shard); when there is memory left, fewer and larger micro-batches are
faster.

The loss of each is divided by their number, or the gradient is that of a sum where a mean was meant. And what looks
at the whole batch, as batch norm does, sees only the micro-batch: with it the gradients differ.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 8192, "width": 1024, "layers": 8},
    cpu={"batch": 256, "width": 256, "layers": 4},
    smoke={"batch": 16, "width": 32, "layers": 2},
    ladder=True,
    claim="fits when a large batch does not",
)


@scenario.variant
def whole(lab, batch, width, layers):
    """The batch in one piece."""
    return _gradients(lab, batch, width, layers, 1)


@scenario.variant
def micro_4(lab, batch, width, layers):
    """Four micro-batches."""
    return _gradients(lab, batch, width, layers, 4)


@scenario.variant
def micro_16(lab, batch, width, layers):
    """Sixteen micro-batches."""
    return _gradients(lab, batch, width, layers, 16)


def _gradients(lab, batch, width, layers, pieces):
    blocks = [block for _ in range(layers) for block in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(width, width)).to(lab.device)
    rows, targets = (torch.randn(batch, width, device=lab.device) for _ in range(2))
    micro = list(zip(rows.chunk(pieces), targets.chunk(pieces), strict=True))
    inputs = [rows, targets, *model.parameters()]

    def loss(some, wanted):
        return torch.nn.functional.mse_loss(model(some), wanted) / pieces

    def step():
        model.zero_grad()
        with lab.useful():
            for some, wanted in micro:
                loss(some, wanted).backward()

    lab.report("MiB kept for backward", _bytes_for_backward(lambda: loss(*micro[0]), inputs) / MiB)
    return Work(
        step,
        flops=6 * batch * width**2 * (layers + 1) - 2 * batch * width**2,  # the first layer's input has no gradient
        dtype="fp32",
        items=batch,
        inputs=inputs,
        output=lambda: [parameter.grad for parameter in model.parameters()],
    )


def _bytes_for_backward(forward, inputs):
    """Bytes that a forward pass keeps for its backward pass, beside what is there anyway."""
    saved, existing = {}, {tensor.untyped_storage().data_ptr() for tensor in inputs}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() not in existing:
            saved[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()  # alive until all is counted, so that no address comes twice
    del result
    return sum(saved.values())
