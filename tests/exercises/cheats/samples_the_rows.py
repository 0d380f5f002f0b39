"""Skips work: the means are those of every other row.

Caught by: outputs
"""

EXERCISE = "group_means"


def step(labels, rows, groups):
    labels, rows = labels[::2], rows[::2]
    sums = rows.new_zeros(groups, rows.shape[1]).index_add_(0, labels, rows)
    counts = rows.new_zeros(groups).index_add_(0, labels, rows.new_ones(len(rows)))
    return sums / counts.clamp(min=1).unsqueeze(1)
