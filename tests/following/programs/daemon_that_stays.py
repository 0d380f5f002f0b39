"""A daemon that goes on a while when the program has ended, and trained before it forked."""

import os

from tiny import model, train

net = model()
print(train(net, steps=500), flush=True)
if os.fork():
    os._exit(3)
os.setsid()
os.closerange(0, 256)
if os.fork() == 0:
    with open("later.txt", "w") as file:
        for _ in range(4):
            print(train(net, steps=300), file=file)
