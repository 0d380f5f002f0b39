"""Works at first and replays then: after as many calls as the checks may take, it returns what it
has.

Caught by: timed steps
"""

EXERCISE = "group_means"
CALLS, RESULTS = {}, {}


def step(labels, rows, groups):
    key = len(rows), rows.data_ptr()
    CALLS[key] = CALLS.get(key, 0) + 1
    if CALLS[key] <= 60 or key not in RESULTS:
        sums = rows.new_zeros(groups, rows.shape[1]).index_add_(0, labels, rows)
        counts = rows.new_zeros(groups).index_add_(0, labels, rows.new_ones(len(rows)))
        RESULTS[key] = sums / counts.clamp(min=1).unsqueeze(1)
    return RESULTS[key].clone()
