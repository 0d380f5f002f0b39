"""The default effect of SIGTERM to the group, whose child has a handler."""

import os
import signal
import time

from tiny import train

print(train(steps=400), flush=True)
child = os.fork()
if child == 0:
    calls = []
    signal.signal(signal.SIGTERM, lambda *_: calls.append(1))
    open("ready", "w").close()
    time.sleep(2)
    time.sleep(1.5)
    with open("calls.txt", "w") as file:
        file.write(str(len(calls)))
    os._exit(0)
while not os.path.exists("ready"):
    time.sleep(0.01)
os.killpg(0, signal.SIGTERM)
time.sleep(5)
print("not reached")
