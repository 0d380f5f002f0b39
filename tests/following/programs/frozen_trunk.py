"""A frozen trunk without gradients, a head with an optimizer that often has nothing to do."""

import torch
from tiny import model, train

trunk = model().requires_grad_(False).eval()
head = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(head.parameters())
print(train(torch.nn.Sequential(trunk, head), optimizer))
for _ in range(200):
    optimizer.zero_grad()
    optimizer.step()
with torch.inference_mode():
    for _ in range(300):
        y = head(trunk(torch.ones(2, 8)))
print(y.tolist(), {key: len(value) for key, value in optimizer.state_dict().items()})
