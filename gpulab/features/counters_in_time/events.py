"""The counters of a GPU over the steps of a variant, sampled after the measurement."""

from __future__ import annotations

from gpulab.core.events import Event, VariantEvent
from gpulab.core.findings import Finding
from gpulab.core.values import Amount, Line, Name, PositiveAmount, PositiveCount, Seconds


class CountersSampled(VariantEvent, frozen=True):
    """The counters over `steps` steps of a variant, whose step took `step_s` meanwhile.

    `rows`: by the name of a row, a value for each bin of the `shown_s` seconds in the middle: bytes
    per second, or a share. `per_step`: bytes of a step, over all of them. `off_s` and `on_s`:
    seconds of the same steps in pairs, without and with sampling.
    """

    interval_s: Seconds
    steps: PositiveCount
    step_s: PositiveAmount
    shown_s: PositiveAmount
    rows: dict[Name, list[Amount]]
    per_step: dict[Name, Amount] = {}
    off_s: list[PositiveAmount] = []
    on_s: list[PositiveAmount] = []


class CountersEnded(Event, frozen=True):
    """The end of the sampling. `ratios`: what a row counted of copies made there and then, over
    their size.
    """

    package: Line = ""
    ratios: dict[Name, Amount] = {}
    findings: list[Finding] = []
