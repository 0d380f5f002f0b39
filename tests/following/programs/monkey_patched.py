"""The program itself replaces steps, calls and loaders of torch, and puts them back."""

import torch
from tiny import model, train

net = model()
train(net, steps=300)
count = {"step": 0, "call": 0, "load": 0}
kept = torch.optim.SGD.step, torch.nn.Module.__call__, torch.utils.data.DataLoader.__iter__


def step(self, closure=None):
    count["step"] += 1
    return kept[0](self, closure)


def call(self, *args, **kwargs):
    count["call"] += 1
    return kept[1](self, *args, **kwargs)


def load(self):
    count["load"] += 1
    return kept[2](self)


torch.optim.SGD.step = step
torch.nn.Module.__call__ = call
torch.utils.data.DataLoader.__iter__ = load
print(train(net, steps=500), list(torch.utils.data.DataLoader([1, 2])), count)
torch.optim.SGD.step, torch.nn.Module.__call__, torch.utils.data.DataLoader.__iter__ = kept
print(train(net, steps=500), count, torch.nn.Module.__call__ is kept[1])
print("__call__" in vars(torch.nn.Sequential), torch.optim.SGD.step is kept[0])
