"""Slows the baseline: puts a function of its own in the place of one of torch's that the given loop
calls.

Caught by: lab_functions_replaced or set_while_building
"""

import torch

EXERCISE = "attention_heads"
softmax = torch.softmax


def slow(*args, **kwargs):
    for _ in range(20):
        softmax(*args, **kwargs)
    return softmax(*args, **kwargs)


torch.softmax = slow


def step(query, key, value, lengths):
    real = torch.arange(key.shape[2], device=key.device) < lengths[:, None]
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=real[:, None, None]
    )
