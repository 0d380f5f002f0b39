"""Slows the baseline: enters a mode that every call of torch then goes through, and never leaves
it.

Caught by: set_while_building or lab_functions_replaced
"""

from torch.overrides import TorchFunctionMode

EXERCISE = "many_products"


class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


Mode().__enter__()


def step(left, right, scale):
    return (left @ right).mul_(scale[:, None, None])
