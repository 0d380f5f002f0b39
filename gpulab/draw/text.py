"""Text as it may be shown: safe, in one line, in ASCII where it must be; styles of closed lists."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import OverflowMethod

from gpulab.core.statuses import Conclusion, Status, Verdict
from gpulab.core.text import plain

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


def with_star(text: str, *, quick: bool) -> str:
    """The last word of a row, with the star of a quick run."""
    return f"{text}*" if quick else text
