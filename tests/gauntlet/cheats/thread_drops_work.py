"""A thread takes the newest of what waits and drops the rest; the step returns at once.

Caught by: streams and threads or context and output
"""

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
    out, wanted = torch.empty(N, N), threading.Event()
    ended = threading.Event()

    def work():
        while not ended.is_set():
            if wanted.wait(0.05):
                wanted.clear()
                torch.mm(a, b, out=out)

    threading.Thread(target=work, daemon=True).start()

    def output():
        import time

        time.sleep(5e-3)
        return out

    yield Work(wanted.set, inputs=(a, b), output=output)
    ended.set()
