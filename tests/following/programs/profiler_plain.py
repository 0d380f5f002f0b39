"""The program's own profiler, around some steps, again and again."""

import re
from collections import Counter

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 20)
for turn in range(12):
    with torch.profiler.profile(record_shapes=True, with_stack=turn % 2 == 0) as profiler:
        train(net, optimizer, 5)
    names = Counter(re.sub(" at 0x.*", "", event.name) for event in profiler.events())
    names = {name: count for name, count in names.items() if not re.search("[(<]", name)}
    print(turn, *sorted(names.items()), sep="\n  ")
    train(net, optimizer, 150)
