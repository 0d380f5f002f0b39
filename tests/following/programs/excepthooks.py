"""Hooks of its own for exceptions: of the program, of a thread, of what cannot be raised."""

import sys
import threading

from tiny import train


def hook(kind, value, trace):
    print("hook", kind.__name__, value, sys.exc_info()[0])


class Fails:
    def __del__(self):
        raise ValueError("in __del__")


sys.excepthook = hook
sys.unraisablehook = lambda args: print("unraisable", args.exc_value)
threading.excepthook = lambda args: print("thread", args.exc_value)
print(train(steps=600))
del_me = Fails()
del del_me
thread = threading.Thread(target=lambda: [][0])
thread.start()
thread.join()
print(sys.excepthook is hook, train(steps=600))
raise LookupError("at the end")
