"""Reduced precision: computes in bfloat16, and returns float32.

Caught by: outputs
"""

EXERCISE = "many_products"


def step(left, right, scale):
    return (left.bfloat16() @ right.bfloat16()).float().mul_(scale[:, None, None])
