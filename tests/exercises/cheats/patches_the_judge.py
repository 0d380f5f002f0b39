"""Patches what the judges share before a judge takes it: every result is zeros, on both sides.

Caught by: lab_functions_replaced
"""

import torch

from gpulab.engine.build import exercise

EXERCISE = "row_norms"
exercise.called = lambda function, arguments, shape: torch.zeros(shape)


def step(rows, weight, bias):
    return torch.zeros_like(rows)
