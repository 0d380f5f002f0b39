"""What limits each variant, and below it what the rules found: why, what it would gain, what to
do.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.draw.blocks import Block, Group
from gpulab.features.roofline import view as roofline
from gpulab.report.report import VariantReport
from gpulab.show.parts import part


def limits(variants: Sequence[VariantReport], most: int | None = None) -> Block | None:
    """`most` findings of each; None where nothing limits any, and nothing was found."""
    parts: list[Block] = []
    for variant in variants:
        if limited := roofline.limits([variant]):
            parts.append(limited)
        parts += part("findings.view:lines", variant, most) or []
    return Group(*parts) if parts else None
