"""A training step that is compiled whole: forward, backward, optimizer."""

import torch
from tiny import model

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
graphs = []


def backend(graph, inputs):
    graphs.append(graph.code)
    return graph


@torch.compile(backend=backend)
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(200):
    loss = step(torch.ones(4, 8))
print(loss.item(), len(graphs))
print(*graphs, sep="\n")
