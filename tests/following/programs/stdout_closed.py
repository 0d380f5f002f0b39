"""sys.stdout is closed before the end, and what is printed then fails."""

import sys

from tiny import train

print(train())
sys.stdout.close()
train(steps=500)
try:
    print("more")
except ValueError as error:
    print(error, file=sys.stderr)
sys.stderr.close()
train(steps=300)
