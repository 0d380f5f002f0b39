"""A script that is not there."""
# run: python not_there.py

print("not run")
