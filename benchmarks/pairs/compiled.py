"""A chain of element-wise operations, eager against compiled; and the compiled one against
itself.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    "pairs", needs=("compiler",), params={"nbytes": 64 * MiB}, cpu={"nbytes": 1 * MiB}
)


@scenario.variant
def baseline(lab, nbytes):
    """Eager."""
    return _chain(lab, nbytes, _operations)


@scenario.variant
def twin(lab, nbytes):
    """The same code once more."""
    return _chain(lab, nbytes, _operations)


@scenario.variant
def unlike(lab, nbytes):
    """Compiled: a build that takes seconds."""
    return _chain(lab, nbytes, torch.compile(_operations))


@scenario.variant(against="unlike")
def compiled_twin(lab, nbytes):
    """Compiled once more."""
    return _chain(lab, nbytes, torch.compile(_operations))


def _operations(data, scale):
    return ((data * scale + 1) * scale - 1).relu()


def _chain(lab, nbytes, operations):
    data, scale = (torch.rand(nbytes // 4, device=lab.device) for _ in range(2))
    return Work(lambda: operations(data, scale), inputs=(data, scale))
