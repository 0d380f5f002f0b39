"""Hooks that the program registers, global and local ones, in their order; and all there are."""

import torch
from torch.nn.modules import module
from torch.optim import optimizer as of_optimizers
from tiny import model, train

order = []
net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 300)
handles = [
    of_optimizers.register_optimizer_step_pre_hook(lambda *_: order.append("global pre")),
    of_optimizers.register_optimizer_step_post_hook(lambda *_: order.append("global post")),
    optimizer.register_step_pre_hook(lambda *_: order.append("pre")),
    optimizer.register_step_post_hook(lambda *_: order.append("post")),
    module.register_module_forward_pre_hook(lambda m, _: order.append(type(m).__name__)),
    module.register_module_forward_hook(lambda m, *_: order.append(type(m).__name__)),
    net.register_forward_hook(lambda *_: order.append("forward")),
    net.register_full_backward_hook(lambda *_: order.append("backward")),
]
train(net, optimizer, 300)
print(len(order), order[-14:])
for handle in handles:
    handle.remove()
train(net, optimizer, 300)
print(len(order), len(optimizer._optimizer_step_post_hooks), len(net._forward_hooks))
print({name: len(value) for name, value in vars(module).items() if name.endswith("_hooks")})
