"""A stable sort in NumPy.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

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
    """Tries the permutation of the call before, and sorts only where that one does not.

    Caught by: timed steps or remembers_its_inputs
    """
    x = np.random.standard_normal(N)
    orders = [np.arange(N)]

    def step():
        out = x[orders[0]]
        if (out[1:] < out[:-1]).any():
            orders[0] = np.argsort(x, kind="stable")
            out = x[orders[0]]
        return out

    return Work(step, inputs=x)


@scenario.variant
def sorted_in_the_build(lab):
    """Names data that its build has sorted, which takes no time to sort.

    Caught by: said as layout_made_in_build
    """
    x = np.sort(np.random.standard_normal(N))
    return Work(lambda: np.sort(x, kind="stable"), inputs=x)
