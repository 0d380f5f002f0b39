"""Statistics of the columns of a data set, as a dictionary."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 512, 64


@scenario.variant
def apart(lab):
    batch = {"x": torch.randn(ROWS, N)}
    return Work(lambda: {"mean": batch["x"].mean(0), "variance": batch["x"].var(0)}, inputs=batch)


@scenario.variant
def together(lab):
    batch = {"x": torch.randn(ROWS, N)}

    def step():
        variance, mean = torch.var_mean(batch["x"], 0)
        return {"mean": mean, "variance": variance}

    return Work(step, inputs=batch)


@scenario.variant
def named_in_another_order(lab):
    x = torch.randn(ROWS, N)

    def step():
        mean = x.mean(0)
        return {"variance": (x - mean).square().sum(0) / (ROWS - 1), "mean": mean}

    return Work(step, inputs=x)


@scenario.variant
def written_to_a_dictionary(lab):
    """Its step returns nothing."""
    x, results = torch.randn(ROWS, N), {}

    def step():
        results["mean"] = x.mean(0)
        results["variance"] = x.var(0)

    return Work(step, inputs=x, output=lambda: results)
