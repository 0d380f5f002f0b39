"""The program becomes another Python program, and that one a shell that ends with 7."""

import os
import sys

from tiny import train

print("first", train(steps=400), flush=True)
os.execv(sys.executable, [sys.executable, "-u", "second.py"])
# --- second.py
import os

from tiny import train

print("second", train(steps=400), flush=True)
os.execvp("sh", ["sh", "-c", "echo third; exit 7"])
