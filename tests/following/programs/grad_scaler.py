"""A GradScaler that skips steps, of a model whose first layers are frozen."""

import torch
from tiny import model

net = model()
net[0].requires_grad_(False)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=50)
scales = []
for number in range(1200):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.ones(4, 8)).square().mean()
    if number % 61 == 3:
        loss = loss * float("inf")
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    scales.append(scaler.get_scale())
print(scales[::50], loss.item())
print(scaler.state_dict())
