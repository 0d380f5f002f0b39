"""Scripted and traced models, after the classes they are made of were called many times."""

import torch
from tiny import model

net = model().eval()
x = torch.ones(2, 8)
with torch.no_grad():
    for _ in range(400):
        net(x)
scripted = torch.jit.script(net)
traced = torch.jit.trace(net, x)
print(scripted.code, traced.code, scripted.graph, sep="\n")
for each in (scripted, traced, torch.jit.freeze(scripted)):
    for _ in range(100):
        y = each(x)
    print(y.tolist())
torch.jit.save(traced, "traced.pt")
print(torch.jit.load("traced.pt")(x).tolist())
