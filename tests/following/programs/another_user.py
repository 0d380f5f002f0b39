"""The program gives its rights away, where it has any, and its HOME."""

import os

from tiny import model, train

net = model()
train(net, steps=100)
file = open("loss.txt", "w")
del os.environ["HOME"]
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65500)
for _ in range(3):
    print(train(net, steps=500), file=file)
