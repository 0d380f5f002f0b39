"""python -I."""
# run: python -I program.py

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import train

print(sys.flags.isolated, train())
