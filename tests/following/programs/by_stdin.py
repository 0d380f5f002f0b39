"""A program that Python reads from stdin."""
# run: sh -c 'python - one < program.py'

import sys

from tiny import train

print(sys.argv, __name__, "__file__" in globals(), train())
