"""Activation checkpointing: recompute activations in the backward pass to save memory.

**In short:** keep only the input of a block and compute the rest again when it is needed: less memory, a bounded price in time.

```text
kept at the end of the forward pass: a cell is rows x width numbers

             block 1    block 2    block 3    block 4   ...
stored       ░████████  ░████████  ░████████  ░████████
every_second ░          ░████████  ░          ░████████
every_block  ░          ░          ░          ░
             ◀─────────────────────────────────────── backward
   a block without its 8 cells computes them when it is reached,
   and frees them before the next:  ░ its input   █ what is inside
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `stored` | every activation is kept | baseline, 33.8 ms, peak 1.61 GiB | nothing is computed twice |
| `every_second` | half of the blocks keep only their input | 0.91x, peak 1.13 GiB | about half the price and half the gain |
| `every_block` | all blocks keep only their input | 0.84x, peak 850 MiB | one of six matmuls runs twice |

## What is kept, and when

Training keeps activations, the results inside each block, until its backward pass. So memory grows
with depth times batch. `torch.utils.checkpoint` keeps a block's input and runs its forward pass
again later. The peak falls to one input for each block, and the activations of one block.

## Why the price is bounded

A backward pass does twice the arithmetic of a forward pass:

    forward again:  1 / (1 + 2) = 1/3 more at most
    here:           1 of 2 matmuls again = 1/6 more

Here it is a sixth: `checkpoint` stops once the backward pass has what it asks for. That does not
include the result of a block's last matmul (matrix product). Where a forward pass is bound by
memory or launches, its share and the price may be larger: 1.4-1.6x the time on our CPU.

## Where it does not help

It never makes a step faster; it allows a longer sequence or a larger batch. Nothing is gained where
weights, gradients and optimizer state fill the memory. Recompute what is cheap and large:
normalizations and activation functions before matmuls, attention scores before everything. Flash
attention recomputes those inside its kernel.

## What to watch

- MFU (model FLOPs utilization) leaves out repeated FLOPs, HFU (hardware FLOPs utilization) counts
  them, as the rate here does.
- `checkpoint` restores the random generators, for dropout (`preserve_rng_state`; off here, where
  nothing is random). Batch norm updates its statistics twice.
- Pass `use_reentrant=False`: the older form loses gradients where no input of the block has one.
  Here gradients are compared, and agree.
"""

from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 4096, "width": 1024, "layers": 8},
    cpu={"batch": 256, "width": 64, "layers": 8},
    smoke={"batch": 16, "width": 32, "layers": 2},
    sweep={"layers": (2, 4, 8, 16)},
    ladder=True,
    item="row",
    claim="our own measurement on a CPU: half of the memory for 1.4-1.6x the time",
    shows="memory",
    terms=("oom", "out of memory", "gradient checkpointing", "recompute", "peak memory", "mfu"),
)
_WIDER = 4


@scenario.variant
def stored(lab, batch, width, layers):
    """Every activation is kept for the backward pass."""
    return _gradients(lab, batch, width, layers, every=None)


@scenario.variant
def every_second(lab, batch, width, layers):
    """Half of the blocks keep only their input, and are computed again in the backward pass."""
    return _gradients(lab, batch, width, layers, every=2)


@scenario.variant
def every_block(lab, batch, width, layers):
    """All blocks keep only their input, and are computed again in the backward pass."""
    return _gradients(lab, batch, width, layers, every=1)


class _Block(torch.nn.Module):
    """Of a transformer, the part without attention: it keeps its input, and two tensors of four
    times its size.
    """

    def __init__(self, width):
        super().__init__()
        self.up, self.down = (
            torch.nn.Linear(width, _WIDER * width),
            torch.nn.Linear(_WIDER * width, width),
        )

    def forward(self, rows):
        return rows + self.down(torch.nn.functional.gelu(self.up(rows)))


def _gradients(lab, batch, width, layers, every):
    blocks = torch.nn.ModuleList(_Block(width) for _ in range(layers)).to(lab.device)
    given, targets = (torch.randn(batch, width, device=lab.device) for _ in range(2))
    again = [every is not None and index % every == 0 for index in range(layers)]

    runs = [
        partial(checkpoint, block, use_reentrant=False, preserve_rng_state=False)
        if recompute
        else block
        for block, recompute in zip(blocks, again, strict=True)
    ]

    def step():
        blocks.zero_grad()
        with lab.useful():
            rows = given
            for run in runs:
                rows = run(rows)
            torch.nn.functional.mse_loss(rows, targets).backward()

    product = 2 * batch * width * _WIDER * width
    return Work(
        step,
        # the first input has no gradient; one of two products again
        flops=product * (6 * layers - 1 + sum(again)),
        dtype="fp32",
        items=batch,
        inputs=(given, targets, *blocks.parameters()),
        output=lambda: [parameter.grad for parameter in blocks.parameters()],
    )
