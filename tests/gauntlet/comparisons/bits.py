"""How many bits are set in each byte, in NumPy: unpacked, or by a table."""

import numpy as np

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 20_000


def numbers():
    return np.random.randint(0, 256, N, dtype=np.uint8)


@scenario.variant
def unpacked(lab):
    x = numbers()
    return Work(lambda: np.unpackbits(x[:, None], axis=1).sum(1, dtype=np.uint8), inputs=x)


@scenario.variant
def table(lab):
    x, bits = numbers(), np.array([byte.bit_count() for byte in range(256)], np.uint8)
    return Work(lambda: bits[x], inputs=x)
