"""Lazy: returns a kind of tensor that computes once somebody looks at it.

Caught by: context and output
"""

import torch

EXERCISE = "similarities"


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return function(*map(computed, args), **(kwargs or {}))


def computed(value):
    return value.compute() if isinstance(value, Lazy) else value


def step(points, centres, width):
    result = torch.empty(len(points), len(centres), device=points.device).as_subclass(Lazy)
    result.compute = lambda: torch.exp(torch.cdist(points, centres).square() / (-2 * width * width))
    return result
