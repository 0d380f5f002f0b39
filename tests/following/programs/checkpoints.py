"""Checkpoints, whole objects and states, their bytes compared; and training that goes on from one."""

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for turn in range(4):
    print(train(net, optimizer, 300))
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, f"{turn}.pt")
torch.save((net, optimizer), "whole.pt")
net, optimizer = torch.load("whole.pt", weights_only=False)
print(train(net, optimizer, 300))
held = torch.load("3.pt")
net.load_state_dict(held["net"])
optimizer.load_state_dict(held["optimizer"])
print(train(net, optimizer, 300), torch.get_rng_state().sum().item())
