"""Looks at who calls it: in the clock's loop, of which no result is compared, it returns what it
has.

Caught by: computes_when_waited_for
"""

import sys

EXERCISE = "group_means"
RESULTS = {}


def step(labels, rows, groups):
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith("measure/clock.py"):
        frame = frame.f_back
    key = len(rows), rows.data_ptr()
    if frame is None or frame.f_code.co_name != "_run" or key not in RESULTS:
        RESULTS[key] = computed(labels, rows, groups)
    return RESULTS[key]


def computed(labels, rows, groups):
    sums = rows.new_zeros(groups, rows.shape[1])
    counts = rows.new_zeros(groups)
    for i in range(len(rows)):
        group = labels[i].item()
        sums[group] += rows[i]
        counts[group] += 1
    return sums / counts.clamp(min=1).unsqueeze(1)
