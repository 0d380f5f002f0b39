"""Which objects live: what the program drops is gone at once, and the collector finds nothing odd."""

import gc
import weakref

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer)
told = []
refs = [weakref.ref(net, lambda _: told.append("net"))]
refs.append(weakref.ref(optimizer, lambda _: told.append("optimizer")))
refs.append(weakref.ref(net[0].weight, lambda _: told.append("weight")))
gc.disable()
del optimizer
print(told, gc.collect() > 0)
del net
print(told)
other = model().eval()
with torch.no_grad():
    for number in range(500):
        x = torch.ones(2, 8)
        refs = [weakref.ref(x), weakref.ref(other(x))]
        del x
        if any(ref() is not None for ref in refs):
            print("lives on at", number)
            break
ref = weakref.ref(other)
del other
print(ref() is None, gc.collect() >= 0, ref() is None)
print(sum(type(each) is torch.optim.SGD for each in gc.get_objects()))
