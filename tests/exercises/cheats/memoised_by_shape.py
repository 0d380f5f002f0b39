"""Memoised by shape: the result of tensors of the same shape is taken for the same result.

Caught by: outputs
"""

import torch

EXERCISE = "attention_heads"
RESULTS = {}


def step(query, key, value, lengths):
    shapes = query.shape, key.shape
    if shapes not in RESULTS:
        real = torch.arange(key.shape[2], device=key.device) < lengths[:, None]
        RESULTS[shapes] = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=real[:, None, None]
        )
    return RESULTS[shapes].clone()
