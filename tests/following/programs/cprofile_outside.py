"""python -m cProfile."""
# run: python -m cProfile -o /dev/null program.py one two

import sys

from tiny import train

print(sys.argv, __name__, train(), sys.getprofile() is None)
