"""A training step that is compiled whole, to C++."""
# needs: g++

import torch
from tiny import model

net = model()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=False)


@torch.compile
def step(x):
    optimizer.zero_grad(set_to_none=True)
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(100):
    loss = step(torch.ones(4, 8))
print(f"{loss.item():.6f}", dict(torch._dynamo.utils.counters["graph_break"]))
