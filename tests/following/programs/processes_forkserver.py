"""multiprocessing by a fork server, and a process pool of concurrent.futures."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from tiny import train


def work(steps):
    return steps, train(steps=steps)


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(sorted(pool.map(work, [200, 300, 400])))
    print(work(500))
