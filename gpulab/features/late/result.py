"""Who is late in a program of several ranks: the part of its report."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class LateCause(StrEnum):
    """Why a rank comes late: a part of its step takes longer than that of the others, its thread
    did not get its CPU, one line takes longer, or nothing measured says why.
    """

    LOADER = "loader"
    BACKWARD = "backward"
    GC = "gc"
    OTHER = "other"
    CPU_STOLEN = "cpu stolen"
    LINE = "line"
    UNKNOWN = "unknown"


class JobRank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a program of several. All seconds are per step; waiting for others is in none.

    `late_s`: how much later than the median of the others it comes in the steps in which it is
    last; `last` is their share. `loader_s` to `gc_s` are what its main thread did, `other_s` the
    rest of its own time.
    """

    rank: int
    host: str
    late_s: float
    last: float
    loader_s: float
    backward_s: float
    gc_s: float
    other_s: float


class NamedCollective(msgspec.Struct, frozen=True, kw_only=True):
    """A collective; `line` calls it, empty where torch does by itself."""

    name: str
    sizes: list[list[int]]
    line: str


class JobCollective(NamedCollective, frozen=True, kw_only=True):
    """A collective of each step, the `nth` of its kind in it, from 1. `wait_s` is from the median
    rank's coming to the last one's, `transfer_s` from there until the first rank went on, None
    where nobody saw that; both per step.
    """

    group: str
    nth: int
    steps: int
    wait_s: float
    transfer_s: float | None
    last_rank: int
    """That came last most often."""


class LateRank(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that the others wait for, by which share of a step, and why: `excess_s` are the
    seconds per step that the cause explains.
    """

    rank: int
    late_s: float
    share: float
    last: float
    """The share of steps in which it came last."""
    cause: LateCause
    excess_s: float
    collective: int
    """In `collectives`, the one to which it comes last with most waiting."""
    row: str = ""
    """Of its bill: what it has `row_s` more of than the others, in the whole run."""
    row_s: float = 0.0


class MissingRank(NamedCollective, frozen=True, kw_only=True):
    """A rank that others wait for, for `waiting_s` so far: it did not come to that collective, and
    stands there, the innermost line first; empty where it does not answer.
    """

    rank: int
    waiting_s: float
    stack: list[str]


class EndedRank(NamedCollective, frozen=True, kw_only=True):
    """The rank whose end stopped the others, after so many `steps` of its most frequent kind, or
    about so many where that is not `exact`; the last collective that it `came` to, or else the
    others; and the line where it was sampled last. `code` and `signal` are None where nobody said
    how it ended.
    """

    rank: int
    code: int | None
    signal: int | None
    steps: int
    exact: bool
    came: bool
    place: str


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """Who is late in a program of several ranks, by the arrival times of its collectives."""

    steps: int
    """That were compared."""
    step_s: float | None
    """The median of one."""
    ranks: list[JobRank] = []
    collectives: list[JobCollective] = []
    """Those with most waiting first."""
    late: LateRank | None = None
    slow: int | None = None
    """The collective, in `collectives`, whose transfer takes a large part of the step."""
    missing: MissingRank | None = None
    ended: EndedRank | None = None
