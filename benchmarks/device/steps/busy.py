"""Busy: one step that fills the tensor cores, one that fills the memory, one that fills nothing.

What the hardware's counters should read for each can be worked out, so this is what they are
checked with.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("verification", needs=("cuda",), clock="device", claim="none")
N, ELEMENTS = 8192, 1 << 28


@scenario.variant
def product(lab):
    """A bf16 product of 8192."""
    a = torch.randn(N, N, device=lab.device, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return Work(lambda: torch.mm(a, a, out=out), inputs=a, output=out, flops=2 * N**3, dtype="bf16")


@scenario.variant(against=None)
def copy(lab):
    """A copy of a GiB."""
    a = torch.randn(ELEMENTS, device=lab.device)
    out = torch.empty_like(a)
    return Work(lambda: out.copy_(a), inputs=a, output=out, bytes=2 * a.nbytes)


@scenario.variant(against=None)
def launches(lab):
    """Twenty kernels with next to nothing to do."""
    a = torch.randn(64, device=lab.device)
    out = torch.empty_like(a)

    def step():
        for _ in range(20):
            torch.add(a, 1, out=out)

    return Work(step, inputs=a, output=out)


@scenario.variant(against=None)
def spin(lab):
    """One thread that does nothing for a while: busy, and nearly all of the device idle."""
    out = torch.ones(1, device=lab.device)

    def step():
        torch.cuda._sleep(1_000_000)
        return out.mul_(1)

    return Work(step, state=out)
