"""Numbers as a person reads them. Code holds seconds and bytes; only here do they get their
units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.scenario import GiB, KiB, MiB

if TYPE_CHECKING:
    from gpulab.core.estimate import Estimate

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"), (1e-15, "fs"))
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SIZES = ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB"), (1, "B"))


def seconds(value: float | None) -> str:
    """Three significant digits with the unit that fits; n/a where there is none."""
    if value is None:
        return "n/a"
    if not value:
        return "0 s"
    scale, unit = next(((scale, unit) for scale, unit in _TIMES if value >= scale), _TIMES[-1])
    return f"{three_digits(value / scale)} {unit}"


def duration(seconds: float) -> str:
    """Return a duration as a person says it, such as 45 s, 4 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def about(value: float | None) -> str:
    """A speedup that is not final; empty where there is none."""
    return "" if value is None else f"about {times(value)}"


def times(speedup: Estimate | float | None) -> str:
    """A speedup, such as 11.8x."""
    if speedup is None:
        return "n/a"
    value = speedup if isinstance(speedup, (int, float)) else speedup.value
    if 0.9 <= value < 1.1:
        return f"{value:.3f}x"
    return f"{value:.2g}x" if value < 0.1 else f"{three_digits(value)}x"


def with_interval(speedup: Estimate | None) -> str:
    """Such as 1.52x (1.50 to 1.54)."""
    ends = interval(speedup)
    return f"{times(speedup)} ({ends})" if ends else times(speedup)


def interval(speedup: Estimate | None) -> str:
    """Return the ends of a speedup's interval; empty where there is none."""
    return span(speedup.low, speedup.high) if speedup else ""


def span(low: float | None, high: float | None) -> str:
    """The ends of a speedup's interval."""
    return "" if low is None or high is None else f"{interval_end(low)} to {interval_end(high)}"


def byte_count(value: float) -> str:
    """A size in binary units, such as 64.0 MiB."""
    scale, unit = next(((scale, unit) for scale, unit in _SIZES if value >= scale), _SIZES[-1])
    return f"{three_digits(value / scale)} {unit}"


def rate(value: float) -> str:
    """Something per second in powers of a thousand, such as 3.96 T."""
    scale, prefix = next(
        ((scale, prefix) for scale, prefix in _RATES if value >= scale), _RATES[-1]
    )
    return f"{three_digits(value / scale)} {prefix}".rstrip()


def percent_of_roof(share: float) -> str:
    """Wherever it stands: with a tenth below ten per cent."""
    value = 100 * share
    return (
        f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.05 or not value else "<0.1"
    )


_DISTURBED = 1.25


def operation_of_roof(share: float) -> str:
    """Describe an operation's share of the roof: far above it, the recording was disturbed."""
    return "disturbed" if share > _DISTURBED else f"{percent_of_roof(share)} %"


def plural_of(noun: str) -> str:
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def plural(count: int, noun: str, plurals: str = "") -> str:
    """A count with its noun, such as 2 threads; `plurals` where it is an irregular one."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {plurals or plural_of(noun)}"


def plus_minus(time: Estimate) -> str:
    """Half the width of an interval, relative to its median."""
    if time.low is None or time.high is None or not time.value:
        return ""
    width = (time.high - time.low) / 2 / time.value
    return f"±{width:.1%}" if width < 1 else "unstable"


def three_digits(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def interval_end(value: float) -> str:
    """Return one end of a speedup's interval, in the digits that it has everywhere."""
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 2 else f"{value:.3f}"
