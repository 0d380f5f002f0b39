"""The environment that the program and its children see."""

import os
import subprocess
import sys

from tiny import train

train(steps=300)
child = "import os; print(sorted(os.environ))"
print(sorted(name for name in os.environ if name.isupper()))
subprocess.run(["sh", "-c", "env | cut -d= -f1 | sort | grep -v ^_"], check=True)
subprocess.run([sys.executable, "-I", "-c", child], check=True)
