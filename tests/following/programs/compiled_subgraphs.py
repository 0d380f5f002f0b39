"""A compiled function over a model that breaks its graph; the reasons are printed."""

import torch
from tiny import model

net = model()


def twice(x):
    y = net(x)
    print("between")
    return net(y.expand(-1, 8)).sum()


told = torch._dynamo.explain(twice)(torch.ones(4, 8))
print(told.graph_count, told.graph_break_count, told.op_count)
compiled = torch.compile(twice, backend="eager")
for _ in range(40):
    y = compiled(torch.ones(4, 8))
print(y.item(), dict(torch._dynamo.utils.counters["stats"]))
