"""python -m of a package, with relative imports."""
# run: python -m package.work one
# --- package/__init__.py
print("package", __name__)
# --- package/loss.py
from tiny import train

loss = train()
# --- package/work.py
import sys

from .loss import loss

print(__name__, __package__, __spec__.name, sys.argv[0].endswith("package/work.py"), loss)
