"""`triton.autotune` in Triton's interpreter, without a GPU to time on: the configurations run once
each, and the last one is taken.
"""

from itertools import count

from triton.runtime import driver

NUMBERS = count()


class Driver:
    def get_benchmarker(self):
        return run_once


def run_once(call, quantiles):
    call()
    return [-next(NUMBERS)] * len(quantiles)


driver.set_active(Driver())
