"""Returns a subclass of torch.Tensor that computes once an operation is called on it.

Caught by: streams and threads
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()

    class Lazy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            def computed(value):
                return torch.mm(a, b) if isinstance(value, Lazy) else value

            with torch._C.DisableTorchFunctionSubclass():
                return function(*map(computed, args), **(kwargs or {}))

    empty = torch.empty(N, N)
    return Work(lambda: empty.as_subclass(Lazy), inputs=(a, b))
