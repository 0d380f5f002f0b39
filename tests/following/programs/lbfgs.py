"""LBFGS, whose step calls a closure many times, and an optimizer with a closure that fails."""

import torch
from tiny import model

net = model()
optimizer = torch.optim.LBFGS(net.parameters(), line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    if calls == 400:
        raise ArithmeticError("the closure")
    optimizer.zero_grad()
    loss = net(torch.ones(4, 8)).sub(torch.arange(4.0)[:, None]).square().mean()
    loss.backward()
    return loss


try:
    for number in range(200):
        print(number, optimizer.step(closure).item())
except ArithmeticError as error:
    print(error, calls)
print(torch.optim.SGD(net.parameters(), lr=1e-4).step(closure=closure).item())
