"""The descriptors that are open, at the start, after the import, after steps, and in a child."""

import os
import subprocess
import sys


def opened():
    kinds = []
    for number in range(64):
        try:
            kinds.append((number, oct(os.fstat(number).st_mode), os.get_inheritable(number)))
        except OSError:
            pass
    return kinds


print(opened())
from tiny import train  # noqa: E402

print(opened())
for _ in range(3):
    train(steps=500)
    print(opened())
code = "import os; print([n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')])"
subprocess.run([sys.executable, "-c", code], close_fds=False, check=True)
subprocess.run([sys.executable, "-I", "-c", code], close_fds=False, check=True)
