"""A program with a wrong syntax, which no Python runs."""
# run: python wrong.py

print("not run")
# --- wrong.py
import torch
print("never"
x = = 1
