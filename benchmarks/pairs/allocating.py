"""A chain of three operations that allocates for each of them, against one that allocates once."""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario("pairs", params={"nbytes": 64 * MiB}, cpu={"nbytes": 4 * MiB})


@scenario.variant
def baseline(lab, nbytes):
    """Three new tensors a step."""
    return _three_tensors(lab, nbytes)


@scenario.variant
def twin(lab, nbytes):
    """The same code once more."""
    return _three_tensors(lab, nbytes)


@scenario.variant
def unlike(lab, nbytes):
    """One new tensor a step."""
    data = torch.rand(nbytes // 4, device=lab.device) - 1
    return Work(lambda: (data + 0.5).mul_(2).relu_(), inputs=data)


def _three_tensors(lab, nbytes):
    data = torch.rand(nbytes // 4, device=lab.device) - 1
    return Work(lambda: ((data + 0.5) * 2).relu(), inputs=data)
