"""What the program reads of torch by inspection, before and after many steps."""

import hashlib
import inspect

import torch
from tiny import train


def look():
    for each in (
        torch.optim.SGD.step,
        torch.optim.Adam.__init__,
        torch.optim.Optimizer.zero_grad,
        torch.nn.Module.__call__,
        torch.nn.Sequential.forward,
        torch.Tensor.backward,
        torch.utils.data.DataLoader.__iter__,
        torch.profiler.profile.__enter__,
    ):
        digest = hashlib.sha256(inspect.getsource(each).encode()).hexdigest()[:12]
        print(each.__qualname__, inspect.signature(each), digest)
    print("__call__" in vars(torch.nn.Sequential), "__call__" in vars(torch.nn.Linear))
    print(sorted(set(vars(torch.optim.SGD)) - set(dir(torch.optim.Optimizer))))


look()
print(train())
look()
