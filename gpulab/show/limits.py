"""What limits each variant, and below it what the rules found: why, what it would gain, what to
do.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from gpulab.features.findings import view as findings
from gpulab.features.roofline import view as roofline
from gpulab.report.report import VariantReport


def limits(variants: Sequence[VariantReport], most: int | None = None) -> RenderableType | None:
    """`most` findings of each; None where nothing limits any, and nothing was found."""
    parts: list[RenderableType] = []
    for variant in variants:
        if limited := roofline.limits([variant]):
            parts.append(limited)
        parts += findings.lines(variant, most)
    return Group(*parts) if parts else None
