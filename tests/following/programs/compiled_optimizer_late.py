"""An optimizer that is compiled after many plain steps, and run plainly again."""

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
print(train(net, optimizer))
step = torch.compile(optimizer.step, backend="eager")
for _ in range(20):
    net(torch.ones(4, 8)).sum().backward()
    step()
print(dict(torch._dynamo.utils.counters["graph_break"]))
print(train(net, optimizer))
