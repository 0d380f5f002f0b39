"""A total in the first element of an output, beside which its other elements are next to
nothing.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
ROWS, COLUMNS = 256, 2048


@scenario.variant
def reference(lab):
    x = torch.randn(ROWS, COLUMNS)
    return Work(lambda: with_total(x, (x.square().mean(1) - x.mean(1).square()).sqrt()), inputs=x)


@scenario.variant
def giant_element(lab):
    """Takes the small elements from a quarter of the columns.

    Caught by: said as norm_in_few_elements
    """
    x = torch.randn(ROWS, COLUMNS)
    part = x[:, : COLUMNS // 4]
    return Work(
        lambda: with_total(x, (part.square().mean(1) - part.mean(1).square()).sqrt()), inputs=x
    )


def with_total(x, deviations):
    return torch.cat([x[:, :1].square().sum(0) * 1e6, deviations])
