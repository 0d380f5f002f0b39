"""A compiled model that may not be compiled twice, called often."""

import torch
from tiny import model

net = model().eval()
plain = [net(torch.ones(4, 8)).sum().item() for _ in range(600)]
compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
with torch.no_grad():
    compiled(torch.ones(4, 8))
    torch._dynamo.config.error_on_recompile = True
    for _ in range(600):
        y = compiled(torch.ones(4, 8))
print(plain[-1], y.sum().item())
print(torch._dynamo.explain(net)(torch.ones(4, 8)).graph_break_count)
