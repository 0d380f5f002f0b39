"""The order of what happens at the end: threads, atexit, finalizers, flushed files."""

import atexit
import threading
import time
import weakref

from tiny import model, train


class Thing:
    def __del__(self):
        print("deleted")


def last():
    time.sleep(0.3)
    print("thread")


atexit.register(print, "first registered")
print(train(steps=700))
atexit.register(lambda: print("in atexit", train(steps=50)))
thing = Thing()
weakref.finalize(thing, print, "finalized")
file = open("unflushed.txt", "w")
file.write("held back")
threading.Thread(target=last).start()
print(atexit._ncallbacks() - atexit._ncallbacks())
raise SystemExit
