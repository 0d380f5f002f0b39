"""A scenario as lists show it: what its file says, and what this machine lacks for it."""

from __future__ import annotations

import msgspec

from gpulab.model.scenario import Param


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of the list; `missing` and `error` say why it cannot run here."""

    name: str
    topic: str = ""
    title: str = ""
    lesson: str = ""
    claim: str = ""
    path: str = ""
    variants: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    """What each variant does, in a line."""
    params: dict[str, Param] = {}
    cpu: dict[str, Param] = {}
    """Parameters that differ on a CPU."""
    sweep: dict[str, tuple[Param, ...]] = {}
    missing: str | None = None
    error: str | None = None
