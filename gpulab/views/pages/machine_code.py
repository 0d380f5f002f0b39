"""The kernels of variants as PTX or SASS, with the lines that differ from those of another variant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.views.pages.differing import differing
from gpulab.views.text import Glyphs

_NUMBERS = re.compile(r"(%\w+?|\b[URPB]+|\$L__BB|\.L_x_|_param_)\d+(?:_\d+)?")
_NAMES = re.compile(r"\b_Z\w+")
_PLACE = re.compile(r"^\s*(//.*|\.loc\b.*)?$")


def machine_code(
    listings: Mapping[str, Sequence[tuple[str, Sequence[str]]]],
    against: Mapping[str, str],
    shown: Sequence[str],
    glyphs: Glyphs,
) -> RenderableType:
    """A part for each of the `shown` variants; `listings` has (name, lines) of the kernels of all of them.

    Compared without the numbers of registers and labels, which the compiler gives out anew each time.
    """
    parts: list[RenderableType] = []
    for name in shown:
        others = (against.get(name, ""), *listings)
        other = next((each for each in others if each in listings and each != name), "")
        theirs = [line for _, lines in listings.get(other, ()) for line in lines]
        for kernel, lines in listings.get(name, ()):
            heading = f"── {name} · {kernel}{f' · + is not in {other}' if other else ''}"
            text = Text(glyphs(heading), "bold")
            marked = _differing(lines, theirs) if theirs else set()
            for place, line in enumerate(lines):
                mark = "+" if place in marked else " "
                text.append(f"\n{mark} ", "bold" if mark == "+" else "dim")
                text.append(glyphs(line.expandtabs(4).rstrip()), "" if mark == "+" else "dim")
            parts += [text, ""]
    return Group(*parts)


def _differing(lines: Sequence[str], others: Sequence[str]) -> set[int]:
    places = differing([_alike(line) for line in lines], [_alike(line) for line in others])
    return {place for place in places if not _PLACE.match(lines[place])}


def _alike(line: str) -> str:
    return _NAMES.sub("kernel", _NUMBERS.sub(r"\1", line.replace(".reuse", "")))
