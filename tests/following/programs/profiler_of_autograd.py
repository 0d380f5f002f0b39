"""The older profiler, record_function and a trace file, whose names of events are printed."""

import json
from pathlib import Path

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 300)
for _ in range(5):
    with torch.autograd.profiler.profile() as profiler:
        with torch.autograd.profiler.record_function("mine"):
            train(net, optimizer, 3)
    print(sorted((event.key, event.count) for event in profiler.key_averages()))
    train(net, optimizer, 200)
trace = Path("trace.json")
with torch.profiler.profile() as profiler:
    train(net, optimizer, 3)
profiler.export_chrome_trace(str(trace))
names = [event.get("name", "") for event in json.loads(trace.read_text())["traceEvents"]]
print(sorted(name for name in names if name.startswith(("aten", "Optimizer", "autograd"))))
trace.unlink()
