"""Lazy: a thread writes the result after it has been returned.

Caught by: determinism or outputs
"""

import queue
import threading
import time

import torch

EXERCISE = "row_norms"
WAITING = queue.SimpleQueue()


def work():
    while True:
        result, *inputs = WAITING.get()
        time.sleep(5e-4)
        result.copy_(
            torch.nn.functional.layer_norm(inputs[0], inputs[0].shape[1:], *inputs[1:], eps=1e-5)
        )


def step(rows, weight, bias):
    if threading.active_count() < 2:
        threading.Thread(target=work, daemon=True).start()
    result = torch.empty_like(rows)
    WAITING.put((result, rows, weight, bias))
    return result
