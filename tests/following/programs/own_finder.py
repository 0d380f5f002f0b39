"""A finder of its own at the front of sys.meta_path, which prints what is imported from then on."""

import sys

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 3)


class Finder:
    def find_spec(self, name, path=None, target=None):
        print("import", name)


sys.meta_path.insert(0, Finder())
print(train(net, optimizer))
import this_is_not_there  # noqa: F401
