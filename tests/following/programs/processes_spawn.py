"""multiprocessing by spawn, with a child that fails, and one that is ended."""

import multiprocessing
import time

from tiny import train


def work(number):
    train(steps=300)
    if number == 1:
        raise ValueError("a child fails")
    if number == 2:
        time.sleep(100)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work, args=(number,)) for number in range(3)]
    for number, child in enumerate(children):
        child.start()
        if number == 2:
            child.terminate()
        child.join()
    print([child.exitcode for child in children], train(steps=600))
