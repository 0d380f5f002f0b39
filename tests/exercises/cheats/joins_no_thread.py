"""Early: every call starts a thread that computes the result, and does not wait for it.

Caught by: outputs or timed steps
"""

import threading

import torch

EXERCISE = "row_norms"


def work(result, rows, weight, bias):
    result.copy_(torch.nn.functional.layer_norm(rows, rows.shape[1:], weight, bias, eps=1e-5))


def step(rows, weight, bias):
    result = torch.empty_like(rows)
    threading.Thread(target=work, args=(result, rows, weight, bias)).start()
    return result
