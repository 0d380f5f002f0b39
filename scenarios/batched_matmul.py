"""Batched matmul: one call for many small products.

Every call of a library costs time that has nothing to do with its arithmetic: Python, the dispatcher,
and on a GPU a kernel launch. A product of 32x256 by 256x256 takes a GPU less time than its launch, so a
loop over forty of them waits for launches forty times. `torch.bmm` hands all forty over in one call, and
one kernel fills the device.

The gain is bounded by the number of calls saved, 40x here, and shrinks as each product grows: where one
product fills the device by itself, the loop is as fast. Try `--set n=1024`.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    roof="matrix",
    params={"batch": 40, "m": 32, "k": 256, "n": 256},
    cpu={"m": 16, "k": 16, "n": 16},
    smoke={"batch": 8, "m": 4, "k": 16, "n": 16},
    sweep={"n": (16, 32, 64, 128, 256, 512)},
    claim="31x, 20-40x on a GPU",
)


@scenario.variant
def loop(lab, batch, m, k, n):
    """One torch.mm for each product of the batch."""
    left, right, out = _operands(lab, batch, m, k, n)
    products = list(zip(left, right, out, strict=True))

    def step():
        for a, b, c in products:
            torch.mm(a, b, out=c)

    return _work(step, left, right, out)


@scenario.variant
def bmm(lab, batch, m, k, n):
    """One torch.bmm for the whole batch."""
    left, right, out = _operands(lab, batch, m, k, n)
    return _work(lambda: torch.bmm(left, right, out=out), left, right, out)


def _operands(lab, batch, m, k, n):
    left = torch.randn(batch, m, k, device=lab.device)
    right = torch.randn(batch, k, n, device=lab.device)
    return left, right, torch.empty(batch, m, n, device=lab.device)


def _work(step, left, right, out):
    batch, m, k = left.shape
    return Work(
        step,
        flops=2 * batch * m * k * out.shape[2],
        bytes=left.nbytes + right.nbytes + out.nbytes,
        dtype="fp32",
        items=batch * m * k * out.shape[2],  # multiply-adds
        inputs=(left, right),
        output=out,
    )
