"""Findings by their code, as a run file has them."""

from gpulab.core.findings import Finding


def finding(code, variant=None, /, **values):
    """A finding of any code, with whatever values."""
    return Finding(code=code, variant=variant, values=values)
