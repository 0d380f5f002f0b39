"""Makes a finding by its code. On its way out: each becomes a call of its declaration."""

from __future__ import annotations

from gpulab.core.findings import Finding as Finding
from gpulab.core.findings import Value as Value


def finding(code: str, variant: str | None = None, /, **values: Value) -> Finding:
    """A finding with its values as keywords."""
    return Finding(code=code, variant=variant, values=values)
