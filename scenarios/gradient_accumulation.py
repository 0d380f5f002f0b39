"""Gradient accumulation: pay with time for a batch whose activations do not fit.

What training keeps for its backward pass grows with the rows that go through the model at once. Cut
the batch into micro-batches, add up their gradients, and take one optimizer step: the gradient is
the same, and only the activations of one micro-batch are ever kept. gpulab compares the gradients,
and shows the peak memory of each variant beside its time. Weights, gradients and the batch itself
stay whole, so the peak falls by less than the number of pieces.

It is a way to fit, and never a way to be faster. The arithmetic is the same and comes in smaller
pieces, each with its launches and with every weight and every gradient read once more; how much
that costs depends on how far a micro-batch still fills the device. So the variants go from many
pieces to few: take the fewest that fit.

The whole batch does not fit here. A large GPU would hold it, so the lesson has a limit of its own
for what is kept, `limit_mib`; the first forward pass counts what it keeps and runs out of memory
where a tensor goes beyond. With `--set limit_mib=100000` the whole batch runs too, and with a far
larger `--set batch` it meets the device's own limit.

The quick-start guide says to increase the batch size gradually, and to accumulate when memory runs
out. Gradually is how to find the largest micro-batch that fits. As a fix for running out of memory
it is wrong: a larger batch needs more memory. Then accumulate, recompute activations or shard.

Divide the loss of each piece by their number, or the gradient is that of a sum where a mean was
meant. And what looks at the whole batch, as batch norm does, sees only the micro-batch: with it the
gradients differ.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 8192, "width": 1024, "layers": 8, "limit_mib": 160},
    cpu={"batch": 512, "width": 256, "layers": 4, "limit_mib": 2},
    smoke={"batch": 16, "width": 32, "layers": 2, "limit_mib": 16},
    ladder=True,
    increasing_memory=True,
    shows="memory",
    item="row",
    claim="quick-start guide: out of memory: accumulate; increase the batch size gradually",
    terms=("oom", "out of memory", "micro-batch"),
)


@scenario.variant
def micro_16(lab, batch, width, layers, limit_mib):
    """Sixteen micro-batches."""
    return _gradients(lab, batch, width, layers, 16, limit_mib)


@scenario.variant
def micro_4(lab, batch, width, layers, limit_mib):
    """Four micro-batches."""
    return _gradients(lab, batch, width, layers, 4, limit_mib)


@scenario.variant
def micro_2(lab, batch, width, layers, limit_mib):
    """Two micro-batches."""
    return _gradients(lab, batch, width, layers, 2, limit_mib)


@scenario.variant
def whole(lab, batch, width, layers, limit_mib):
    """The batch in one piece, which needs more than limit_mib."""
    return _gradients(lab, batch, width, layers, 1, limit_mib)


def _gradients(lab, batch, width, layers, pieces, limit_mib):
    blocks = [
        block for _ in range(layers) for block in (torch.nn.Linear(width, width), torch.nn.ReLU())
    ]
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

    _require_to_fit(lambda: loss(*micro[0]), inputs, limit_mib)
    return Work(
        step,
        # the first layer's input has no gradient
        flops=6 * batch * width**2 * (layers + 1) - 2 * batch * width**2,
        dtype="fp32",
        items=batch,
        inputs=inputs,
        output=lambda: [parameter.grad for parameter in model.parameters()],
    )


def _require_to_fit(forward, inputs, limit_mib):
    """Run out of memory as soon as a forward pass keeps more than the limit, beside what is there
    anyway.
    """
    kept, existing = {}, {tensor.untyped_storage().data_ptr() for tensor in inputs}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in existing:
            kept[tensor.data_ptr()] = tensor.nbytes  # a tensor that two operations keep counts once
        mib = sum(kept.values()) / MiB
        if mib > limit_mib:
            raise torch.OutOfMemoryError(
                f"{mib:.3g} MiB kept for the backward pass so far, limit_mib={limit_mib}"
            )
        return tensor.detach()  # itself would be a cycle: it belongs to what it is kept for

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()  # alive until all is counted, so that no address comes twice
    del result
