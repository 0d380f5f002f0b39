"""A program with a wrong syntax, which no Python runs."""
# run: python -c 'x = = 1'

print("not run")
