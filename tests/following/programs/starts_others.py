"""Other programs that train: as a child, with no environment, by a shell, with its output taken."""

import os
import subprocess
import sys

from tiny import train

print(train(steps=400), flush=True)
child = [sys.executable, "-c", "import sys, tiny; print(tiny.train(steps=300)); sys.exit(3)"]
done = subprocess.run(child, capture_output=True, text=True)
print(done)
bare = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
print(subprocess.run(child, capture_output=True, text=True, env=bare).stdout)
print(os.system("python -c 'import torch; print(torch.ones(2).sum())'"))
print(os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", "kill -9 $$"]))
print(train(steps=600))
