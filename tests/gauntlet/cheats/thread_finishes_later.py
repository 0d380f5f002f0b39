"""Hands its work to a thread and returns; the thread writes the output soon after the block has ended.

Caught by: streams and threads or context and output or determinism
"""

import queue
import threading

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()
    out, waiting = torch.empty(N, N), queue.SimpleQueue()

    def work():
        while waiting.get():
            torch.mm(a, b, out=out)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def step():
        waiting.put(True)

    yield Work(step, inputs=(a, b), output=lambda: (wait_until_empty(waiting), out)[1])
    waiting.put(False)


def wait_until_empty(waiting):
    import time

    while not waiting.empty():
        time.sleep(1e-4)
    time.sleep(2e-3)
