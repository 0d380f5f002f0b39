"""The program's own profiler, around some steps, again and again."""

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 20)
for turn in range(12):
    with torch.profiler.profile(record_shapes=True, with_stack=turn % 2 == 0) as profiler:
        train(net, optimizer, 5)
    events = profiler.key_averages()
    print(turn, sorted((event.key, event.count) for event in events if "Memory" not in event.key))
    train(net, optimizer, 150)
