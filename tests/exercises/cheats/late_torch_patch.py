"""Slows the baseline late: in a timed step a function of torch that it calls becomes slow.

Caught by: lab_functions_replaced
"""

import torch

EXERCISE = "attention_heads"
CALLS = [0]
softmax = torch.softmax


def slow(*args, **kwargs):
    for _ in range(20):
        softmax(*args, **kwargs)
    return softmax(*args, **kwargs)


def step(query, key, value, lengths):
    CALLS[0] += 1
    if CALLS[0] > 300:
        torch.softmax = slow
    real = torch.arange(key.shape[2], device=key.device) < lengths[:, None]
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=real[:, None, None]
    )
