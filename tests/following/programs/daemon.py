"""A daemon: it forks twice, closes its descriptors, trains on when its parent is gone."""

import os
import sys
import time

if os.fork():
    os.wait()
    print("started", flush=True)
    while not os.path.exists("done.txt"):
        time.sleep(0.05)
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.umask(0o77)
os.closerange(0, 1024)
for number in range(3):
    os.open("/dev/null", os.O_RDWR)

from tiny import train  # noqa: E402

with open("loss.txt", "w") as file:
    for _ in range(5):
        print(train(steps=400), file=file, flush=True)
print("to nobody")
os.rename("loss.txt", "done.txt")
