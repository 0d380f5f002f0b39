"""Activation checkpointing: recompute activations in the backward pass to save memory.

Training keeps the activations of every block until its backward pass, so memory grows with depth
times batch. With `torch.utils.checkpoint` a block keeps only its input; when the backward pass
reaches it, its forward pass runs once more, and those activations are freed before the next block.
The peak falls to one input per block, and the activations of one block. This allows a longer
sequence or a larger batch; it never makes a step faster.

In arithmetic the price is bounded: a forward pass is a third of the arithmetic of a step, so
recomputing all of it costs at most a third more. Here it is a sixth: `checkpoint` stops once
everything that the backward pass asks for is there, and the output of a block's last matrix product
(matmul) is not needed. Checkpointing every second block halves the price and the gain. Measured
here on an H200, with a batch of 8,192: 0.915x the speed for 1.89 in place of 2.89 GiB, and 0.85x
with all blocks. Where the forward pass is memory-bound or launch-bound its share, and the price,
may be larger (on our CPU 1.35x the time).

Recompute what is cheap to compute and large to keep: normalizations and activation functions before
matmuls, attention scores before everything (flash attention recomputes them inside the kernel). The
gain is nothing where weights, gradients and optimizer state fill the memory, which recomputation
does not touch. MFU (model FLOPs utilization) leaves out repeated FLOPs, HFU (hardware FLOPs
utilization) counts them; the rate shown here counts them.

Pitfalls: a block must compute the same again, so `checkpoint` restores the random generators
(`preserve_rng_state`, for dropout; switched off here, where nothing is random), and batch norm
updates its statistics twice. Pass `use_reentrant=False`: the older form loses gradients where no
input of the block has one. Gradients are compared: they are equal.
"""

from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 4096, "width": 1024, "layers": 8},
    cpu={"batch": 1024, "width": 64, "layers": 8},
    smoke={"batch": 16, "width": 32, "layers": 2},
    sweep={"layers": (2, 4, 8, 16)},
    ladder=True,
    item="row",
    claim="our own measurement on a CPU: a third of the memory for 1.35x the time",
    shows="memory",
    terms=("oom", "out of memory", "gradient checkpointing"),
)
_WIDER = 4


@scenario.variant
def stored(lab, batch, width, layers):
    """Every activation is kept for the backward pass."""
    return _gradients(lab, batch, width, layers, every=None)


@scenario.variant
def every_second(lab, batch, width, layers):
    """Half of the blocks keep their input only."""
    return _gradients(lab, batch, width, layers, every=2)


@scenario.variant
def every_block(lab, batch, width, layers):
    """All blocks keep their input only, and are computed again."""
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
