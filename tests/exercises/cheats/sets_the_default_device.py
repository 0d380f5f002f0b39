"""Slows the baseline, maybe in good faith: a default device, even the one that it was, doubles the
cost of a call.

Caught by: set_while_building or lab_functions_replaced
"""

import torch

EXERCISE = "many_products"
torch.set_default_device("cpu")


def step(left, right, scale):
    return (left @ right).mul_(scale[:, None, None])
