"""Wobbles within the tolerance, up and down in turns, so that it passes for stateful; it never
computes again.

Caught by: inputs or timed steps
"""

EXERCISE = "group_means"
SIGNS, RESULTS = {}, {}


def step(labels, rows, groups):
    key = len(rows), rows.data_ptr()
    if key not in RESULTS:
        sums = rows.new_zeros(groups, rows.shape[1]).index_add_(0, labels, rows)
        counts = rows.new_zeros(groups).index_add_(0, labels, rows.new_ones(len(rows)))
        RESULTS[key] = sums / counts.clamp(min=1).unsqueeze(1)
    SIGNS[key] = -SIGNS.get(key, -1)
    return RESULTS[key] * (1 + SIGNS[key] * 9e-5)
