"""A signal to the whole process group runs the program's handler once."""

import os
import signal
import time

from tiny import model, train

net = model()
train(net, steps=300)
calls = []
for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
    signal.signal(each, lambda number, _: calls.append(signal.Signals(number).name))
    os.killpg(0, each)
    train(net, steps=200)
    time.sleep(0.7)
    print(calls, flush=True)
signal.signal(signal.SIGTERM, lambda *_: os._exit(11))
os.killpg(0, signal.SIGTERM)
time.sleep(5)
