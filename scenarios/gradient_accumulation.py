"""Gradient accumulation: pay with time for a batch whose activations do not fit.

**In short:** cut the batch, add up the gradients, update once: less memory for activations, the same gradient, never faster.

```text
one step: pieces of the batch go forward (F) and backward (B)

whole    F████████████████ B───────────────▶                  update
micro_2  F████████ B──────▶ + F████████ B──────▶ +            update
micro_4  F████ B──▶ + F████ B──▶ + F████ B──▶ + F████ B──▶ +  update

         █ activations of 1/16 of the batch, kept from F to B
         + this piece's gradient is added to those before
         update: one step of the optimizer (not timed here)
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `micro_16` | 16 pieces of 512 rows | baseline, 28 to 36 ms by its host, peak 225 MiB | waits for launches 37 % of the time: a piece hardly fills the device |
| `micro_4` | 4 pieces of 2,048 rows | 2.4x to 3.1x, peak 301 MiB | a quarter of the launches, each with more work |
| `micro_2` | 2 pieces of 4,096 rows | 2.8x to 3.5x, peak 397 MiB | 1.13x over `micro_4`, which fills the device nearly as well |
| `whole` | all 8,192 rows at once | out of memory | it keeps more than `limit_mib`, 160 MiB |

## What shrinks, and what does not

Training keeps activations, the results inside the model, for its backward pass. They grow with the
rows that go through at once:

    kept >= rows in a piece * width * layers * 4 bytes
    whole:  8,192 * 1,024 * 8 * 4 bytes = 256 MiB

Weights, gradients and the batch itself stay whole: 201 MiB are held between two steps. So the peak
falls by less than the number of pieces.

## What it costs

The arithmetic is the same, in smaller pieces. Each piece has its own launches, and reads all
weights and gradients once more. The price depends on how well a piece fills the device. So take the
fewest pieces that fit.

## Why the whole batch fails here

A large GPU would hold it, so the lesson sets `limit_mib`. The first forward pass counts what it
keeps, and runs out of memory at the tensor that exceeds it. `--set limit_mib=100000` runs `whole`
too; a far larger `--set batch` meets the device's own limit.

## What the source says

The quick-start guide says to increase the batch size gradually, and to accumulate when memory runs
out. Gradually is how to find the largest piece that fits. As a fix for running out of memory it is
wrong: a larger batch needs more. Then accumulate, recompute activations or shard.

Two pitfalls. Divide the loss of each piece by their number, or the gradient is that of a sum in
place of a mean. And batch norm sees only the piece, so with it the gradients differ. Here gpulab
compares them: they agree.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 8192, "width": 1024, "layers": 8, "limit_mib": 160},
    cpu={"batch": 768, "width": 128, "layers": 2, "limit_mib": 1},
    smoke={"batch": 16, "width": 32, "layers": 2, "limit_mib": 16},
    ladder=True,
    increasing_memory=True,
    shows="memory",
    item="row",
    claim="quick-start guide: out of memory: accumulate; increase the batch size gradually",
    terms=("oom", "out of memory", "micro-batch", "effective batch size", "peak memory"),
)


@scenario.variant
def micro_16(lab, batch, width, layers, limit_mib):
    """The batch in sixteen micro-batches, whose gradients are added up."""
    return _gradients(lab, batch, width, layers, 16, limit_mib)


@scenario.variant
def micro_4(lab, batch, width, layers, limit_mib):
    """Four micro-batches, each four times as large as those of `micro_16`."""
    return _gradients(lab, batch, width, layers, 4, limit_mib)


@scenario.variant
def micro_2(lab, batch, width, layers, limit_mib):
    """Two micro-batches, each twice as large as those of `micro_4`."""
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
