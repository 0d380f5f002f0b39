"""The logarithm of a sum of exponentials: its maximum is subtracted first, since exp(100) has no
place in fp32.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet", cases=("free",))
N = 256


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)

    def step():
        most = x.amax(1, keepdim=True)
        return (x - most).exp().sum(1).log() + most[:, 0]

    return Work(step, inputs=x)


@scenario.variant
def logsumexp_without_maximum(lab):
    """Leaves the maximum out.

    Caught by: outputs
    """
    x = torch.randn(N, N)
    return Work(lambda: x.exp().sum(1).log(), inputs=x)
