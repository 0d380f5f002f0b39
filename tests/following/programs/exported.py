"""Exported models, and graphs of torch.fx, after many calls and steps."""

import torch
from tiny import model, train

net = model()
exported = torch.export.export(net, (torch.ones(2, 8),))
print(exported.graph_module.code, exported.graph_signature)
train(net)
with torch.no_grad():
    for _ in range(300):
        net(torch.ones(2, 8))
    batch = torch.export.Dim("batch")
    exported = torch.export.export(net, (torch.ones(2, 8),), dynamic_shapes=({0: batch},))
print(exported.graph_module.code, exported.module()(torch.ones(3, 8)).shape)
for traced in (torch.fx.symbolic_trace(net), torch.fx.Tracer().trace(net)):
    print(getattr(traced, "code", traced))
print([type(each).__name__ for each in net.modules()])
