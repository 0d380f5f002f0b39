"""python -X dev, which shows files that are not closed, and every warning with its line."""
# run: python -X dev -W always program.py

import warnings

from tiny import train

warnings.warn("mine", stacklevel=1)
open("left.txt", "w").write("left open")
print(train())
