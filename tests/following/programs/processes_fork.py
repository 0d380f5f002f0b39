"""multiprocessing by fork: a pool, a queue, an event."""

import multiprocessing

from tiny import train


def work(steps):
    return train(steps=steps)


def put(queue):
    queue.put(work(200))


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    print(work(500), flush=True)
    with context.Pool(2) as pool:
        print(pool.map(work, [100, 200, 300]))
    queue = context.Queue()
    process = context.Process(target=put, args=(queue,), daemon=True)
    process.start()
    print(queue.get(), process.join(), process.exitcode, work(500))
