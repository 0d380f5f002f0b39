"""Steps and calls that raise, with the whole text of their tracebacks."""

import traceback

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 500)
net[1].register_forward_hook(lambda *_: 1 / 0)
for turn in range(3):
    try:
        net(torch.ones(1, 8))
    except (ZeroDivisionError, IndexError):
        print(traceback.format_exc())
    net[1]._forward_hooks.clear()
    train(net, optimizer, 300)
    try:
        net(torch.ones(1, 7))
    except RuntimeError:
        print(traceback.format_exc())
    optimizer.param_groups[0]["lr"] = "fast"
    try:
        optimizer.step()
    except TypeError as error:
        print(traceback.format_exc(), len(traceback.extract_tb(error.__traceback__)))
    optimizer.param_groups[0]["lr"] = 1e-3
    net[1].register_forward_hook(lambda *_: [][turn])
