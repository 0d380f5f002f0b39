"""Draws from distributions given by logits: other numbers by each method, which cannot be
compared.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 64, 128


@scenario.variant
def multinomial(lab):
    logits = torch.randn(ROWS, N)
    return Work(lambda: logits.softmax(1).multinomial(1)[:, 0], inputs=logits)


@scenario.variant(unchecked="draws other numbers")
def gumbel(lab):
    logits = torch.randn(ROWS, N)
    return Work(
        lambda: (logits - torch.empty_like(logits).exponential_().log()).argmax(1), inputs=logits
    )


@scenario.variant
def softmax_by_hand(lab):
    """Draws the same numbers as the first."""
    logits = torch.randn(ROWS, N)

    def step():
        exponents = (logits - logits.amax(1, keepdim=True)).exp()
        return exponents.multinomial(1)[:, 0]

    return Work(step, inputs=logits)
