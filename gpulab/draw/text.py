"""Numbers and words as a person reads them. Code holds seconds and bytes; only here do they get
their units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich.console import OverflowMethod

from gpulab.core.statuses import Conclusion, Status, Verdict
from gpulab.core.text import plain
from gpulab.scenario import GiB, KiB, MiB

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"), (1e-15, "fs"))
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BOILERPLATE = re.compile(
    r"\s*(?:Search for `cuda\w+' in \S+ for more information\."
    r"|CUDA kernel errors might be asynchronously reported at some other API call[^\n]*?incorrect\."
    r"|For debugging consider passing CUDA_LAUNCH_BLOCKING=1\.?"
    r"|Compile with `?TORCH_USE_CUDA_DSA`? to enable device-side assertions\.)"
)
_SIZES = ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB"), (1, "B"))
QUICK = "* a quick run: short, with wide intervals"
"""What the star of `with_star` means."""
STYLES: dict[Verdict | Status, str] = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.SAME: "cyan",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNCHECKED: "yellow",
    Verdict.WRONG: "bold red",
    Verdict.INVALID: "bold red",
    Status.PENDING: "dim",
    Status.OK: "",
    Status.FAILED: "bold red",
    Status.WRONG: "bold red",
    Status.INVALID: "bold red",
    Status.SKIPPED: "dim",
    Status.OUT_OF_MEMORY: "yellow",
}
"""Of verdicts and statuses."""
OUTCOME_STYLES: dict[Conclusion, str] = {
    Conclusion.MEASURED: "",
    Conclusion.FAILED: "bold red",
    Conclusion.WRONG: "bold red",
    Conclusion.SLOWER: "bold red",
    Conclusion.INCONCLUSIVE: "yellow",
    Conclusion.INVALID: "bold red",
    Conclusion.INTERRUPTED: "bold red",
    Conclusion.UNDER_WAY: "dim",
    Conclusion.SKIPPED: "dim",
}
"""Of what a run came to."""


@dataclass(frozen=True)
class Glyphs:
    """Makes text safe to show, and ASCII where it must be. Called with a text, it gives one line of
    it.
    """

    ascii: bool = False

    @property
    def overflow(self) -> OverflowMethod:
        """How Rich ends a line that is too long: its ellipsis comes after all else, and is no
        ASCII.
        """
        return "crop" if self.ascii else "ellipsis"

    def __call__(self, text: str) -> str:
        # A newline in a title would make a line that looks like one of the lab's.
        return self.block(text).translate(_NO_LINES)

    def block(self, text: str) -> str:
        """The same with its lines: for what is a block of lines by its meaning, such as a
        traceback.
        """
        text = plain(text)
        return to_ascii(text) if self.ascii else text


def to_ascii(text: str) -> str:
    """The text in ASCII, a cell for a cell where that can be."""
    return text if text.isascii() else text.translate(_TO_ASCII).encode("ascii", "replace").decode()


_NO_LINES = {ord("\n"): " ", ord("\t"): " "}
_TO_ASCII = {
    **dict.fromkeys(map(ord, "─━═▁▂▔▄▀╸╺╴╶╌·•"), "-"),
    ord("●"): "o",
    **dict.fromkeys(map(ord, "│┃║▌▐▎▏▕▍▊▋▉"), "|"),
    **dict.fromkeys(map(ord, "█▓▇▆▅"), "#"),
    **dict.fromkeys(map(ord, "▒░▃"), ":"),
    **dict.fromkeys(map(ord, "┌┐└┘├┤┬┴┼╭╮╯╰"), "+"),
    ord("µ"): "u",
    ord("±"): "+-",
    ord("◦"): "o",
    ord("…"): "~",
    ord("▸"): ">",
    ord("▼"): "v",
    ord("▲"): "^",
    ord("↑"): "^",
    ord("↓"): "v",
    ord("→"): ">",
    ord("←"): "<",
    ord("⏎"): ">",
    ord("�"): "?",
}


def without_boilerplate(text: str) -> str:
    """A CUDA error without the advice that torch repeats below each."""
    return _BOILERPLATE.sub("", text)


def seconds(value: float | None) -> str:
    """Three significant digits with the unit that fits; n/a where there is none."""
    if value is None:
        return "n/a"
    scale, unit = next(((scale, unit) for scale, unit in _TIMES if value >= scale), _TIMES[-1])
    return f"{three_digits(value / scale)} {unit}"


def duration(seconds: float) -> str:
    """How long something took as a person says it, such as 45 s, 4 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def times(value: float | None) -> str:
    """A speedup, such as 11.8x."""
    if value is None:
        return "n/a"
    return (
        f"{value:.3f}x"
        if 0.9 <= value < 1.1
        else f"{value:.2g}x"
        if value < 0.1
        else f"{three_digits(value)}x"
    )


def span(low: float | None, high: float | None) -> str:
    """The ends of a speedup's interval."""
    return "" if low is None or high is None else f"{_ratio(low)} to {_ratio(high)}"


def with_star(text: str, *, quick: bool) -> str:
    """The last word of a row, with the star of a quick run."""
    return f"{text}*" if quick else text


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


def plural(count: int, noun: str) -> str:
    """A count with its noun, such as 2 threads."""
    return f"{count} {noun}{'s' * (count != 1)}"


def plus_minus(low: float | None, high: float | None, median: float) -> str:
    """Half the width of an interval, relative to its median."""
    if low is None or high is None or not median:
        return ""
    width = (high - low) / 2 / median
    return f"±{width:.1%}" if width < 1 else "unstable"


def three_digits(value: float) -> str:
    """Three significant digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(value: float) -> str:
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 2 else f"{value:.3f}"
