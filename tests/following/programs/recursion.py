"""How deep a forward may recurse, and which functions stand above one."""

import inspect
import sys

import torch
from tiny import model, train


class Deep(torch.nn.Module):
    def forward(self, x):
        global depth, names
        depth += 1
        if names is None:
            names = [frame.function for frame in inspect.stack(context=0)]
        return self(x)


print(train(steps=400))
sys.setrecursionlimit(400)
deep = Deep()
for _ in range(200):
    depth, names = 0, None
    try:
        deep(torch.ones(1))
    except RecursionError:
        pass
print(depth, names)
stepped = []
net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
optimizer.register_step_post_hook(
    lambda *_: stepped.append([frame.function for frame in inspect.stack(context=0)])
)
train(net, optimizer, 30)
print(stepped[0], all(each == stepped[0] for each in stepped))
