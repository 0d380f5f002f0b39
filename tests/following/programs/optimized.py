"""python -O and -OO, which drop assertions and docstrings."""
# run: sh -c 'python -O program.py && python -OO program.py'

import sys

from tiny import model, train

assert not model
print(__debug__, __doc__, sys.flags.optimize, train())
