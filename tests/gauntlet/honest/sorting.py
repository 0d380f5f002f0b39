"""Honest twins of `cheats/sorting.py`: they sort in each step."""

import numpy as np

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 20_000


@scenario.variant
def reference(lab):
    x = np.random.standard_normal(N)
    return Work(lambda: np.sort(x, kind="stable"), inputs=x)


@scenario.variant
def permutation_remembered(lab):
    """Takes the permutation of this call."""
    x = np.random.standard_normal(N)
    return Work(lambda: x[np.argsort(x, kind="stable")], inputs=x)


@scenario.variant
def sorted_in_the_build(lab):
    """Sorts a copy whose memory its build made."""
    x, out = np.random.standard_normal(N), np.empty(N)

    def step():
        np.copyto(out, x)
        out.sort(kind="stable")
        return out

    return Work(step, inputs=x)
