"""cProfile, which counts the calls of its own functions."""

import cProfile
import pstats

from tiny import model, train

net = model()
train(net, steps=300)
profile = cProfile.Profile()
for _ in range(4):
    profile.enable()
    train(net, steps=100)
    profile.disable()
    train(net, steps=200)
stats = pstats.Stats(profile).stats
for (path, _, name), (_, calls, *_) in sorted(stats.items()):
    if "/here/" in path:
        print(path.rpartition("/")[2], name, calls)
