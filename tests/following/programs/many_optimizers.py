"""An optimizer for each parameter, stepped within backward."""

import torch
from tiny import model

net = model()
each = {p: torch.optim.SGD([p], lr=1e-3) for p in net.parameters()}
order = []


def update(p):
    each[p].step()
    each[p].zero_grad()
    order.append(tuple(p.shape))


for p in each:
    p.register_post_accumulate_grad_hook(update)
for _ in range(500):
    loss = net(torch.ones(4, 8)).square().mean()
    loss.backward()
print(loss.item(), len(order), order[:4])
