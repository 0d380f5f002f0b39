"""Ctrl+C that nobody catches, within a step."""

import signal

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
train(net, optimizer, 600)
optimizer.register_step_pre_hook(lambda *_: signal.raise_signal(signal.SIGINT))
train(net, optimizer)
