"""A limit of address space, at which an allocation fails."""

import resource

import torch
from tiny import model, train

net = model()
train(net, steps=100)
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + 2**30
resource.setrlimit(resource.RLIMIT_AS, (most, most))
print(train(net))
for turn in range(3):
    try:
        torch.empty(2**33)
    except RuntimeError as error:
        print(str(error).split(":")[0].split(" at ")[0][:20])
    print(train(net, steps=500))
