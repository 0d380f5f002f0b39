"""python -c, with arguments."""
# run: python -c 'import sys, tiny; print(sys.argv, sys.path[0], __name__, tiny.train())' one -c
# --- empty.txt
