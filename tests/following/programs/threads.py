"""Threads that train in turns, each with its own optimizer, and one that goes on as a daemon."""

import threading

from tiny import model, train

turn = threading.Lock()
losses = {}


def work(name):
    net = model()
    for _ in range(5):
        with turn:
            losses[name] = train(net, steps=100) if name else 0


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
    thread.join()
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(sorted(losses), sorted(thread.name for thread in threading.enumerate()))
