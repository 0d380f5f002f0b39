"""What a worker reports of the checks that a result rests on, and what lets others check the worker."""

from __future__ import annotations

from gpulab.protocol.event import Event
from gpulab.protocol.finding import Finding, Value
from gpulab.protocol.statuses import CheckKind
from gpulab.protocol.values import Count, Index, Integer, Name, Seconds


class ProcessStarted(Event, frozen=True):
    """A process began to measure: its number, its entropy, and the first epoch that is built in it.

    `startup_s`: what it took until then, by part (interpreter, imports, device, file). Those after the first find what
    that one imported. `conductor`: the first of the processes that were forked after the same import of torch.
    """

    process: Index
    seed: Integer
    conductor: Index = 0
    epoch: Index = 0
    startup_s: dict[Name, Seconds] = {}


class Examined(Event, frozen=True):
    """A kind of check ran `count` times on a variant, since the last such event; `ok` is False where any failed.

    `wrong`: a check that failed proves that the variant does not compute what it should; else it cannot be measured
    fairly. `values` are what it showed, the numbers of a sentence. `skipped` says why it could not run at all.
    """

    variant: Name | None
    check: CheckKind
    ok: bool = True
    count: Count = 1
    wrong: bool = False
    values: dict[Name, Value] = {}
    reason: Finding | None = None
    skipped: Finding | None = None
