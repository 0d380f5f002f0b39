"""Anomaly detection, hooks on saved tensors, and checkpoints of activations."""

import torch
from torch.utils.checkpoint import checkpoint
from tiny import model

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
packed = 0


def pack(x):
    global packed
    packed += 1
    return x.double()


for number in range(400):
    optimizer.zero_grad()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x.float()):
        loss = checkpoint(net, torch.ones(4, 8), use_reentrant=False).sum()
    loss.backward()
    optimizer.step()
print(loss.item(), packed)
with torch.autograd.detect_anomaly(check_nan=True):
    try:
        (net(torch.ones(1, 8)) * 0).sqrt().pow(0.5).log().sum().backward()
    except RuntimeError as error:
        print(error)
