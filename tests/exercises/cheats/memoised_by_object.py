"""Memoised by object: the result of the same memory is taken for the same result.

Caught by: outputs
"""

EXERCISE = "many_products"
RESULTS = {}


def step(left, right, scale):
    key = left.data_ptr(), right.data_ptr(), scale.data_ptr(), len(left)
    if key not in RESULTS:
        RESULTS[key] = (left @ right).mul_(scale[:, None, None])
    return RESULTS[key].clone()
