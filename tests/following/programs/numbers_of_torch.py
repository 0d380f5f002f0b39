"""Modes of torch that change what is computed, set before and during training."""

import torch
from tiny import model, train

torch.use_deterministic_algorithms(True)
torch.set_flush_denormal(True)
torch.set_default_dtype(torch.float64)
print(train())
torch.set_default_device("meta")
net = model()
print(net[0].weight.device, net(torch.ones(2, 8)).shape)
for _ in range(500):
    net(torch.ones(2, 8))
torch.set_default_device("cpu")
torch.set_printoptions(precision=2)
net = model()
print(train(net), torch.zeros(3), torch.is_inference_mode_enabled())
with torch.device("meta"):
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1e-3)
    for _ in range(400):
        optimizer.step()
print(torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled())
