"""An exception that nobody catches, raised within a step, within a forward, with a cause and a note."""

import torch
from tiny import model, train


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 700:
            try:
                {}["missing"]
            except KeyError as error:
                error.add_note("a note")
                raise RuntimeError("in a forward") from error
        return self.inner(x)


net = Net()
train(net, torch.optim.SGD(net.parameters(), lr=1e-3))
