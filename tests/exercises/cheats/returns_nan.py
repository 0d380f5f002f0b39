"""Returns NaN: no comparison with it is ever true, and none says that it is too large.

Caught by: outputs
"""

EXERCISE = "group_means"


def step(labels, rows, groups):
    return rows.new_full((groups, rows.shape[1]), float("nan"))
