"""Returns memory as it comes: what the given function computed last and gave back may still lie
there.

Caught by: outputs or determinism
"""

EXERCISE = "many_products"


def step(left, right, scale):
    return left.new_empty(len(left), left.shape[1], right.shape[2])
