"""The sixteen largest of each row."""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N, K = 32, 512, 16


@scenario.variant
def sort(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.sort(1, descending=True).values[:, :K], inputs=x)


@scenario.variant
def topk(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.topk(K).values, inputs=x)


@scenario.variant
def partition(lab):
    x = torch.randn(ROWS, N).numpy()
    return Work(lambda: -np.sort(np.partition(-x, K, 1)[:, :K], 1), inputs=x)
