"""Optimizers of the program's own: with a step, without super().__init__, and no optimizer at all."""

import torch
from tiny import model, train


class Sign(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1e-4})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad.sign(), alpha=-group["lr"])
        return "stepped"


class Outer(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner
        self.param_groups = inner.param_groups

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self):
        return self.inner.step()


class Plain:
    def __init__(self, params):
        self.params = list(params)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def step(self):
        for p in self.params:
            p.data.sub_(p.grad, alpha=1e-3)


net = model()
for optimizer in (Sign(net.parameters()), Outer(Sign(net.parameters())), Plain(net.parameters())):
    print(type(optimizer).__name__, train(net, optimizer, 400), optimizer.step())
    print(sorted(vars(optimizer)), sorted(vars(type(optimizer))))
