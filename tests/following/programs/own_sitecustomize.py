"""A sitecustomize and a usercustomize of the program's own."""
# run: sh -c 'PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}site:other exec python program.py'

import sys

import sitecustomize
from tiny import train

print(sitecustomize.here, sitecustomize.__file__.split("/")[-2:], sitecustomize.__name__)
print(train(), [path.rpartition("/")[2] for path in sys.path[:4]])
# --- site/sitecustomize.py
import sys

here = f"here {__name__}"
print("customized", len(sys.argv), "torch" in sys.modules)
# --- other/sitecustomize.py
print("never")
