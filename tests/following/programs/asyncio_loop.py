"""asyncio: training in tasks and in threads, a signal handler of the loop, a timeout."""

import asyncio
import os
import signal

from tiny import model, train


async def steps(name, net):
    for _ in range(4):
        train(net, steps=100)
        await asyncio.sleep(0)
    return name


async def main():
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    print(await asyncio.gather(steps("a", model()), steps("b", model())))
    print(await asyncio.to_thread(train, None, None, 300))
    os.kill(os.getpid(), signal.SIGTERM)
    await told.wait()
    child = await asyncio.create_subprocess_exec("sh", "-c", "exit 6")
    print(await child.wait())
    try:
        await asyncio.wait_for(asyncio.sleep(100), 0.1)
    except TimeoutError:
        print("timeout")


asyncio.run(main())
