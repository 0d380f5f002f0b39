"""Only the model is compiled; the optimizer is plain; autograd is compiled for some steps."""

import torch
from tiny import model, train

net = torch.compile(model(), backend="aot_eager")
print(train(net, torch.optim.Adam(net.parameters())))
with torch._dynamo.config.patch(compiled_autograd=True):
    for _ in range(3):
        torch.compile(lambda: net(torch.ones(4, 8)).sum().backward(), backend="eager")()
print(sum(p.grad.double().sum().item() for p in net.parameters()))
