"""The environment that the program and its children see, but for what tells children of the follower."""

import os
import subprocess
import sys

from tiny import train

train(steps=300)
child = "import os; print(sorted(name for name in os.environ if name[:7] not in ('GPULAB_', 'PYTHONP', 'TORCH_F', 'TORCH_N')))"
print(sorted(name for name in os.environ if name.isupper() and name[:7] not in ("GPULAB_", "PYTHONP", "TORCH_F", "TORCH_N")))
subprocess.run(["sh", "-c", "env | cut -d= -f1 | sort | grep -v -e ^_ -e ^GPULAB_ -e ^PYTHONP -e ^TORCH_F -e ^TORCH_N"], check=True)
subprocess.run([sys.executable, "-I", "-c", child], check=True)
