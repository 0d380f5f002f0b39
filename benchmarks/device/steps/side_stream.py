"""A product on a side stream: joined before the step ends, and left to run on by itself."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("verification", needs=("cuda",), params={"n": 2048})


@scenario.variant
def current(lab, n):
    """On the current stream."""
    a, out = _matrices(lab, n)
    return Work(lambda: torch.mm(a, a, out=out), inputs=a, output=out)


@scenario.variant
def joined(lab, n):
    """On a side stream that waits for the current one, which then waits for it."""
    a, out = _matrices(lab, n)
    side = torch.cuda.Stream(lab.device)

    def step():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.mm(a, a, out=out)
        torch.cuda.current_stream().wait_stream(side)

    return Work(step, inputs=a, output=out)


@scenario.variant
def not_joined(lab, n):
    """On a side stream that nobody waits for."""
    a, out = _matrices(lab, n)
    side = torch.cuda.Stream(lab.device)

    def step():
        with torch.cuda.stream(side):
            torch.mm(a, a, out=out)

    return Work(step, inputs=a, output=out)


def _matrices(lab, n):
    a = torch.randn(n, n, device=lab.device)
    return a, torch.empty_like(a)
