"""What a program sees of itself: paths, flags, threads, signals, finders, gc.

Not the callback of the collector, which only it times; and not the names of modules: what runs in a process has one, by which Dynamo finds what stands there.
"""

import builtins
import gc
import os
import signal
import sys
import threading

from tiny import train

names = set(dir(builtins))


def look():
    print(sys.argv, sys.orig_argv[1:], sys.path[0] == os.getcwd(), len(sys.path), sys.flags)
    print([getattr(each, "__name__", type(each).__name__) for each in sys.meta_path])
    print(len(sys.path_hooks), sys.excepthook is sys.__excepthook__, sys.getrecursionlimit())
    print(sorted(set(dir(builtins)) - names), threading.active_count(), gc.isenabled())
    print(gc.get_threshold(), gc.get_freeze_count(), sys.getswitchinterval())
    handlers = {each.name: signal.getsignal(each) for each in signal.valid_signals()
                if isinstance(each, signal.Signals)}
    print({name: str(value) for name, value in sorted(handlers.items())
           if value not in (signal.SIG_DFL, None)} .keys())
    print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), signal.getitimer(signal.ITIMER_REAL))
    print(os.getcwd() == os.environ.get("PWD", os.getcwd()), os.umask(0o22), os.nice(0))
    print(getattr(sys.modules.get("sitecustomize"), "__file__", None))


look()
print(train())
look()
