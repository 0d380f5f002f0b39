"""python -S, python -E, python -s and -B: each with its modules."""
# run: sh -c 'for flag in -S -E -s -B -P; do python $flag program.py $flag; done'

import os
import sys

if sys.argv[1] in ("-S", "-P"):
    sys.path[:0] = [os.getcwd()]
    print(sys.flags.no_site, "site" in sys.modules, len(sys.path) > 2)
else:
    from tiny import train

    print(sys.argv, train(steps=500), sys.flags)
