"""Advice: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.features.findings.advice import Advice, NotJudged


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about the rules."""

    advice: list[Advice] = []
    """What makes it slow and what to do, what would gain most first."""
    not_judged: list[NotJudged] = []
    """Rules that lack a measurement."""
