"""Makes the baseline slower: a function of NumPy is replaced by one that does it twice."""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 1 << 12


@scenario.variant
def reference(lab):
    x = torch.randn(N).numpy()
    return Work(lambda: np.sort(x), inputs=x)


@scenario.variant
def numpy_sort_replaced(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N).numpy()
    sort = np.sort

    def slow(array):
        sort(array)
        return sort(array)

    np.sort = slow
    return Work(lambda: sort(x), inputs=x)
