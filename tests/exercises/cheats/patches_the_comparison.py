"""Patches the lab: its comparison agrees with everything.

Caught by: lab_functions_replaced or outputs compared outside
"""

from gpulab.engine.build import tensors

EXERCISE = "attention_heads"
agree = tensors.agree
tensors.agree = lambda output, reference, **how: agree(reference, reference, **how)


def step(query, key, value, lengths):
    return value.mean(dim=2, keepdim=True).expand(query.shape).clone()
