"""Inference: calls of modules of three kinds, nested in one another, one with its own __call__."""

import torch
from tiny import model


class Loud(torch.nn.Linear):
    def __call__(self, x):
        return super().__call__(x) + 1


class Odd(torch.nn.Module):
    def forward(self, x, *, times=1):
        for _ in range(times):
            x = x * 0.5
        return x


inner, loud, odd = model(), Loud(8, 8), Odd()
with torch.no_grad():
    for number in range(700):
        y = inner(odd(loud(torch.ones(2, 8)), times=2))
        z = odd(y)
print(y.tolist(), z.tolist())
for each in (Loud, Odd, torch.nn.Linear, torch.nn.Sequential, torch.nn.Module):
    print(each.__name__, sorted(name for name in vars(each) if "call" in name))
Loud.__call__ = torch.nn.Module.__call__
del Odd.forward
try:
    odd(loud(torch.ones(2, 8)))
except NotImplementedError as error:
    print(error)
