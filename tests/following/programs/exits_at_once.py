"""os._exit, with text that was not flushed."""

import os

from tiny import train

print(train())
with open("flushed.txt", "w") as file:
    file.write("whole")
os._exit(255)
