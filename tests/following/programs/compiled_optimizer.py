"""An optimizer whose step is compiled, in two backends that need no compiler."""

import torch
from tiny import model

for backend in ("eager", "aot_eager"):
    torch._dynamo.reset()
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=True)
    step = torch.compile(optimizer.step, backend=backend)
    for _ in range(60):
        optimizer.zero_grad()
        net(torch.ones(4, 8)).sum().backward()
        step()
    print(backend, sum(p.double().sum().item() for p in net.parameters()))
counters = torch._dynamo.utils.counters
print(dict(counters["graph_break"]), dict(counters["unimplemented"]))
