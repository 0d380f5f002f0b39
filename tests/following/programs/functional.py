"""Training without modules or optimizers: torch.func, vmap, jvp."""

import torch
from torch.func import functional_call, grad, jvp, vmap
from tiny import model

net = model()
weights = {name: p.detach() for name, p in net.named_parameters()}


def loss(weights, x):
    return functional_call(net, weights, x).square().mean()


x = torch.randn(4, 8)
for number in range(600):
    steps = grad(loss)(weights, x)
    weights = {name: w - 1e-3 * steps[name] for name, w in weights.items()}
print(loss(weights, x).item())
each = vmap(grad(loss), in_dims=(None, 0))(weights, x)
print({name: tuple(value.shape) for name, value in each.items()})
print(jvp(lambda x: loss(weights, x), (x,), (torch.ones_like(x),))[1].item())
