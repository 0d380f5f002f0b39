"""The program's own profiler with a schedule, in the middle of many steps."""

import torch
from tiny import model

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def ready(profiler):
    events = profiler.key_averages()
    rows = [f"{event.key} {event.count}" for event in events if "#" not in event.key]
    print(profiler.step_num, *sorted(rows), sep="\n  ")


schedule = torch.profiler.schedule(wait=150, warmup=100, active=50, repeat=4)
with torch.profiler.profile(schedule=schedule, on_trace_ready=ready) as profiler:
    for _ in range(1500):
        optimizer.zero_grad()
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        profiler.step()
