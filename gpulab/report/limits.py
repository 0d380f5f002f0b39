"""What limits each variant, and below it what the rules found: why, what it would gain, what to
do.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from gpulab.features.findings import view as findings
from gpulab.features.roofline import view as roofline
from gpulab.report.report import VariantReport


def limits(variants: Sequence[VariantReport], most: int | None = None) -> RenderableType | None:
    """`most` findings of each; None where nothing limits any, and nothing was found."""
    parts: list[RenderableType] = []
    for variant in variants:
        if limited := roofline.limits([variant]):
            parts.append(limited)
        for line in findings.lines(variant, most):
            parts.append(Padding(line, (0, 0, 0, 2), expand=False))
    return Group(*parts) if parts else None
