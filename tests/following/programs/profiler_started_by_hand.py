"""A profiler that is started, stepped and stopped by hand, and one in another one's place."""

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
profiler = torch.profiler.profile(schedule=lambda step: torch.profiler.ProfilerAction.NONE)
profiler.start()
for _ in range(30):
    train(net, optimizer, 20)
    profiler.step()
profiler.stop()
for _ in range(10):
    profiler = torch.profiler.profile()
    profiler.prepare_trace()
    train(net, optimizer, 100)
    profiler.start_trace()
    train(net, optimizer, 2)
    profiler.stop_trace()
    print(len([event for event in profiler.events() if event.name.startswith("aten::")]))
    try:
        with torch.autograd.profiler.profile(), torch.autograd.profiler.profile():
            train(net, optimizer, 1)
    except RuntimeError as error:
        print(str(error)[:60])
