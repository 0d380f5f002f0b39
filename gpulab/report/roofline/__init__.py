"""What stands behind a roofline: the facts of a step, and whether its rates are possible."""
