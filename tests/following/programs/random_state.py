"""The random numbers of Python, NumPy and torch, drawn during training."""

import random
import tempfile

import numpy as np
import torch
from tiny import train

random.seed(1)
np.random.seed(2)
torch.manual_seed(3)
for _ in range(4):
    train(steps=300)
    print(random.random(), np.random.rand(), torch.rand(1).item(), torch.initial_seed())
print(next(tempfile._RandomNameSequence()) is not None, random.getstate()[1][-1])
print(torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype())
print(torch.are_deterministic_algorithms_enabled(), torch.backends.opt_einsum.strategy)
