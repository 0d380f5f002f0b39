"""Floor 3: what this machine has for the lab, what is missing, and how to fix it."""
