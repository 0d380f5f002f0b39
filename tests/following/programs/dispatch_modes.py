"""Modes that see every operation, count them, and change some."""

from collections import Counter

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from tiny import model, train

seen = Counter()


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen[str(func)] += 1
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen[getattr(func, "__name__", "?")] += 1
        return func(*args, **(kwargs or {}))


net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
with Operations(), Functions():
    print(train(net, optimizer, 500))
for name, count in sorted(seen.items()):
    print(count, name)
