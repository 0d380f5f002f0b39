"""A program that replaces clocks, open, print and json by its own, as tests do."""

import builtins
import json
import os
import time

from tiny import model, train

calls = []


def fake(name, value):
    def call(*args, **kwargs):
        calls.append(name)
        return value(*args, **kwargs)

    return call


net = model()
train(net, steps=100)
for module, name in (
    (time, "time"),
    (time, "monotonic"),
    (time, "perf_counter"),
    (time, "perf_counter_ns"),
    (time, "process_time"),
    (time, "thread_time"),
    (time, "sleep"),
    (os, "write"),
    (os, "open"),
    (os, "getpid"),
    (os, "listdir"),
    (json, "dumps"),
    (builtins, "open"),
    (builtins, "print"),
):
    setattr(module, name, fake(name, getattr(module, name)))
time.time = time.monotonic = time.perf_counter = fake("frozen", lambda: 1.0)
print(train(net))
print(calls)
