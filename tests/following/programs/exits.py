"""sys.exit with a text, in the midst of training."""

import sys

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 500)
optimizer.register_step_post_hook(lambda *_: sys.exit("no more"))
train(net, optimizer)
