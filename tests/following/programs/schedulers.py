"""Schedulers, which wrap an optimizer's step, with the warning for a wrong order."""

import warnings

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
before = torch.optim.lr_scheduler.StepLR(optimizer, 10)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    before.step()
print([str(each.message).split(".")[0] for each in caught])
train(net, optimizer, 500)
cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=40)
for _ in range(30):
    train(net, optimizer, 10)
    cycle.step()
print(cycle.get_last_lr(), optimizer.step.__name__, type(optimizer.step).__name__)
print(sorted(vars(optimizer)), optimizer._opt_called, cycle.state_dict()["_step_count"])
