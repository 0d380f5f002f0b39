"""An execution trace observer of the program's own, whose nodes are counted."""

import json
from pathlib import Path

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 400)
for turn in range(3):
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback("et.json")
    observer.start()
    train(net, optimizer, 20)
    observer.stop()
    observer.unregister_callback()
    names = [node["name"] for node in json.loads(Path("et.json").read_text())["nodes"]]
    print(turn, len(names), sorted(set(names)))
    train(net, optimizer, 400)
Path("et.json").unlink()
