"""Limits that the program sets itself: few descriptors, small files."""

import resource

from tiny import model, train

net = model()
train(net, steps=100)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
print(train(net))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(train(net))
print(resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_NOFILE))
