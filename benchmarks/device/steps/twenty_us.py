"""A step of about 20 us on a GPU, beside one that empties the caches whenever its turn comes."""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    "verification", params={"operations": 4, "kib": 256, "mib": 256}, cpu={"mib": 32}
)


@scenario.variant
def small(lab, operations, kib, mib):
    """A few small operations."""
    return _small(lab, operations, kib)


@scenario.variant
def twin(lab, operations, kib, mib):
    """The same code once more."""
    return _small(lab, operations, kib)


@scenario.variant(against=None)
def large(lab, operations, kib, mib):
    """A copy that no cache holds."""
    source = torch.rand(mib * MiB // 4, device=lab.device)
    out = torch.empty_like(source)
    return Work(lambda: out.copy_(source), inputs=source, output=out)


def _small(lab, operations, kib):
    data = torch.rand(kib * 256, device=lab.device)
    out = torch.empty_like(data)

    def step():
        torch.mul(data, 2, out=out)
        for _ in range(operations - 1):
            out.add_(1)

    return Work(step, inputs=data, output=out)
