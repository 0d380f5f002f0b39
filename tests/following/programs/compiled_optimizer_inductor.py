"""An optimizer that is compiled to C++."""
# needs: g++

import torch
from tiny import model

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)


@torch.compile
def step():
    optimizer.step()


for _ in range(30):
    optimizer.zero_grad()
    net(torch.ones(4, 8)).sum().backward()
    step()
print(sum(p.double().sum().item() for p in net.parameters()))
print(dict(torch._dynamo.utils.counters["graph_break"]))
