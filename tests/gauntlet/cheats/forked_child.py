"""Hands its work to a process that it forked, and returns at once.

Caught by: streams and threads or context and output
"""

import os
import signal
import time

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
    for shared in (a, b):
        shared.share_memory_()
    out = torch.empty(N, N).share_memory_()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        while os.read(read_end, 1):
            torch.mm(a, b, out=out)
        os._exit(0)
    os.close(read_end)

    def step():
        os.write(write_end, b"x")

    yield Work(step, inputs=(a, b), output=lambda: (time.sleep(5e-3), out)[1])
    os.kill(pid, signal.SIGKILL)  # thousands of steps may wait for it
    os.close(write_end)
    os.waitpid(pid, 0)
