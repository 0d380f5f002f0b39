"""Hard-coded: returns what the result is on average, and looks at no row.

Caught by: outputs
"""

EXERCISE = "row_norms"


def step(rows, weight, bias):
    return bias.expand(rows.shape).clone()
