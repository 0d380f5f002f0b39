"""A handler of SIGTERM saves a checkpoint, each time it is told to."""

import os
import signal

import torch
from tiny import model, train

net = model()
calls = 0


def save(number, frame):
    global calls
    calls += 1
    torch.save(net.state_dict(), f"{calls}.pt")
    print("saved", signal.Signals(number).name, flush=True)


for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
    signal.signal(number, save)
train(net, steps=500)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
    os.kill(os.getpid(), number)
    train(net, steps=300)
print(calls)
