"""cProfile, with the calls of every function counted."""

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
    print(path.rpartition("/")[2], name.split(" at 0x")[0], calls)
