"""Batch size: more rows in a step, until memory or the gain runs out.

A small batch leaves the device half idle: the weights are read from memory for a few rows only, and every
launch costs the same however little it starts. The step is a two-layer perceptron; time is compared per
row. Doubling the batch helps as long as something else than arithmetic sets the pace, and the curve
flattens where the arithmetic does. The sweet spot is the smallest batch that is nearly as fast per row as
the best: beyond it a larger one buys no throughput and costs latency and memory.

The first size that does not fit into memory is reported, and is no failure: that is what a search for the
batch size meets. Try `--set width=16 --set hidden=1000000`.

In training a larger batch is no free gain even below the sweet spot: fewer steps an epoch want another
learning rate. On a CPU thirty-two rows already keep one core's arithmetic busy, so the curve starts flat.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"width": 1024, "hidden": 4096},
    cpu={"width": 256, "hidden": 1024},
    smoke={"width": 32, "hidden": 64},
    per="item",
    ladder=True,
    increasing_memory=True,
    claim="11-12x in throughput from 32 to 512 rows",
)
_LARGEST, _COMPARED = 2048, 32


@scenario.variant
def batch_32(lab, width, hidden):
    """32 rows a step."""
    return _perceptron(lab, width, hidden, 32)


@scenario.variant
def batch_64(lab, width, hidden):
    """64 rows a step."""
    return _perceptron(lab, width, hidden, 64)


@scenario.variant
def batch_128(lab, width, hidden):
    """128 rows a step."""
    return _perceptron(lab, width, hidden, 128)


@scenario.variant
def batch_256(lab, width, hidden):
    """256 rows a step."""
    return _perceptron(lab, width, hidden, 256)


@scenario.variant
def batch_512(lab, width, hidden):
    """512 rows a step."""
    return _perceptron(lab, width, hidden, 512)


@scenario.variant
def batch_1024(lab, width, hidden):
    """1,024 rows a step."""
    return _perceptron(lab, width, hidden, 1024)


@scenario.variant
def batch_2048(lab, width, hidden):
    """2,048 rows a step."""
    return _perceptron(lab, width, hidden, 2048)


def _perceptron(lab, width, hidden, batch):
    # One large draw, so that the first rows are the same in every size.
    rows = torch.randn(_LARGEST, width, device=lab.device)[:batch].clone()
    up = torch.randn(width, hidden, device=lab.device) / width**0.5
    down = torch.randn(hidden, width, device=lab.device) / hidden**0.5
    between = torch.empty(batch, hidden, device=lab.device)
    out = torch.empty(batch, width, device=lab.device)

    def step():
        torch.mm(rows, up, out=between).relu_()
        torch.mm(between, down, out=out)

    return Work(
        step,
        flops=4 * batch * width * hidden,
        bytes=rows.nbytes + up.nbytes + down.nbytes + 2 * between.nbytes + out.nbytes,
        dtype="fp32",
        items=batch,
        inputs=(rows, up, down),
        output=out[:_COMPARED],
    )
