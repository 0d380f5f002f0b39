"""A sitecustomize that fails."""
# run: sh -c 'PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}. exec python program.py'

from tiny import train

print(train())
# --- sitecustomize.py
raise LookupError("a site that fails")
