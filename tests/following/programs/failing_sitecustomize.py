"""A sitecustomize that fails."""
# run: env PYTHONPATH=. python program.py

from tiny import train

print(train())
# --- sitecustomize.py
raise LookupError("a site that fails")
