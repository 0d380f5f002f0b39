"""A program with a module of its own that is named torch."""

import torch

print(torch.what, torch.optim.SGD().step())
# --- torch/__init__.py
what = "not torch"
from . import nn, optim
# --- torch/nn.py
class Module:
    pass
# --- torch/optim.py
class SGD:
    def step(self):
        return "stepped"
