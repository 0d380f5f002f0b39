"""A scenario as lists show it: what its file says, and what this machine lacks for it."""

from __future__ import annotations

import msgspec

from gpulab.core.findings import Finding
from gpulab.scenario import Param


class ScenarioRow(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, or one plain function, of a list. `missing` and `error` say why it cannot run
    here.

    `own`: it comes from a path that the user named. `function`: it is a plain function of its file.
    """

    multi_line = ("lesson",)
    schema: str = "gpulab.scenario/1"
    name: str
    topic: str = ""
    title: str = ""
    lesson: str = ""
    claim: str = ""
    path: str = ""
    variants: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    """What each variant does, in a line."""
    against: dict[str, str] = {}
    """Which other each variant is compared with: on a ladder the rung below. One for scale is not
    in it.
    """
    params: dict[str, Param] = {}
    cpu: dict[str, Param] = {}
    """Parameters that differ on a CPU."""
    sweep: dict[str, tuple[Param, ...]] = {}
    missing: Finding | None = None
    recording: str = ""
    """The kind of device on which a run of it was recorded that ships."""
    hides: Finding | None = None
    """Which other file it keeps from being found by its name."""
    error: str | None = None
    own: bool = False
    function: bool = False
