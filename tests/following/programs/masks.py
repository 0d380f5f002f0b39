"""A umask that leaves no rights to anybody."""

import os

from tiny import train

print(oct(os.umask(0o777)))
print(train())
open("mine.txt", "w").close()
os.mkdir("folder")
print(oct(os.umask(0o777)))
