"""It kills itself."""

import os

from tiny import train

print(train(), flush=True)
os.kill(os.getpid(), 9)
