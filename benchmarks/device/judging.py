"""What a line of verify.py says of a figure: rows with what was expected and measured, and bounds
on both sides.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec


class Judgement(StrEnum):
    """Of one row. YES and NO are about the lab, short, within and over about a source's claim: only
    reported.
    """

    YES = "yes"
    NO = "NO"
    SHORT = "short"
    WITHIN = "within"
    OVER = "over"
    NOT_RUN = "not run"


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    title: str
    expected: str
    measured: str
    judgement: Judgement
    line: str = ""


@dataclass(frozen=True)
class Bounds:
    """Both ends of what is accepted of a figure."""

    low: float
    high: float

    def judge(self, value):
        """SHORT, WITHIN or OVER."""
        if value < self.low:
            return Judgement.SHORT
        return Judgement.OVER if value > self.high else Judgement.WITHIN

    def holds(self, value):
        return self.judge(value) == Judgement.WITHIN


def row(title, expected, measured, holds):
    """A row about the lab: whether what it says holds."""
    return Row(title, expected, measured, Judgement.YES if holds else Judgement.NO)


def within(title, bounds, value, unit=""):
    """A row about one figure, in percent where the unit says so."""
    scale, form = (100, ".1f") if unit == "%" else (1, ".4g")
    text = [f"{scale * number:{form}}" for number in (bounds.low, bounds.high, value)]
    unit = f" {unit}" if unit else ""
    return row(title, f"{text[0]} to {text[1]}{unit}", f"{text[2]}{unit}", bounds.holds(value))


def around(value, relative):
    return Bounds(value * (1 - relative), value * (1 + relative))


def points(value, by):
    """So many points of a per cent around a share."""
    return Bounds(value - by / 100, value + by / 100)


def failed(rows):
    """The rows in which the lab does not do what it says, or did not get to it."""
    return [entry for entry in rows if entry.judgement in (Judgement.NO, Judgement.NOT_RUN)]


def table(rows):
    """All rows as text: what is short of a source's claim, or over it, is no fault of the lab."""
    yield f"{'line':52} {'expected':30} {'measured':52} holds"
    for entry in rows:
        yield f"{entry.title:52} {entry.expected:30} {entry.measured:52} {entry.judgement}"
    count = sum(entry.judgement == Judgement.YES for entry in rows)
    wrong = len(failed(rows))
    claims = sum(
        entry.judgement in (Judgement.SHORT, Judgement.WITHIN, Judgement.OVER) for entry in rows
    )
    yield (
        f"{count} hold, {wrong} do not or were not run; {claims} claims of sources, which are "
        "reported and not judged"
    )


def heads_where_it_differs(comparison, margin=0.03):
    """Whether a comparison shows its sustained speedup, and puts it first where it is another one.

    It is another one where it lies outside of the interleaved interval and further than `margin`
    from its speedup.
    """
    sustained = comparison.get("sustained")
    if sustained is None or comparison["speedup"] is None:
        return False
    outside = not comparison["low"] <= sustained["speedup"] <= comparison["high"]
    apart = abs(sustained["speedup"] / comparison["speedup"] - 1) > margin
    return sustained["heads"] is not None if outside and apart else True


def split_ceilings(first, second):
    """How far two calibrations are apart: (the device's ceilings, the host's), by name as relative
    differences.

    What the host takes to queue a launch says how busy the host is; transfers depend on it too, and
    small ones are all latency. Kernels in a row differ by process: on H100s 1.9 to 2.2 us, steady
    within 0.5 % in each, while a graph's nodes take 1.00 us in each.
    """
    apart = {key: abs(second[key] / best - 1) for key, best in first.items() if key in second}
    host = {key: difference for key, difference in apart.items() if _is_of_host(key)}
    return {key: difference for key, difference in apart.items() if key not in host}, host


def _is_of_host(key):
    roof, kind = key[:2]
    launches = roof == "launch" and kind in ("enqueue", "spacing")
    return "host" in roof or launches or roof == "page fault"
