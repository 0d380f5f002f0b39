"""A sort of some rows: one after the other, or in a pool of two threads that the step waits for."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 8, 8000


def in_order(row):
    return np.sort(row, kind="stable")


@scenario.variant
def in_turn(lab):
    x = np.random.standard_normal((ROWS, N))
    return Work(lambda: np.stack([in_order(row) for row in x]), inputs=x)


@scenario.variant
def pool_of_two(lab):
    x = np.random.standard_normal((ROWS, N))
    with ThreadPoolExecutor(2) as pool:
        yield Work(lambda: np.stack(list(pool.map(in_order, x))), inputs=x)
