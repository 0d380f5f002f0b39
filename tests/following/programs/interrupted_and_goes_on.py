"""Ctrl+C that is caught, once by a handler and once as an exception, and a deadline by SIGALRM."""

import signal

from tiny import model, train

net = model()
for turn in range(3):
    try:
        train(net, steps=300)
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("interrupted", turn)


def late(*_):
    raise TimeoutError("too late")


signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    while True:
        train(net, steps=10)
except TimeoutError as error:
    print(error)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
