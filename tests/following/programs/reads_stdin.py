"""A program that reads its stdin, by input, by lines, and whose child reads it too."""

import subprocess
import sys

from tiny import train

count = int(input("how many? "))
print(count, train(steps=300 * count))
print(sys.stdin.read(), sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())
print(subprocess.run(["cat"], check=True, capture_output=True).stdout)
