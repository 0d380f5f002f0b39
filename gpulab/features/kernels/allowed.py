"""What a scenario's CUDA C++ may ask of the compiler: options from a list, and headers of the CUDA
toolkit and of the scenario's own folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulab.core.files import read_regular
from gpulab.core.limits import SOURCE_BYTES
from gpulab.core.text import cut, one_line

_DEFINED = r"[A-Za-z_]\w*(\([\w, .]*\))?(=.*)?"
_BOOLEAN = "true|false"
_OPTIONS = {
    "define-macro": _DEFINED,
    "undefine-macro": r"[A-Za-z_]\w*",
    "include-path": ".+",
    "std": r"c\+\+(03|11|14|17|20)",
    "use_fast_math": None,
    "ftz": _BOOLEAN,
    "prec-div": _BOOLEAN,
    "prec-sqrt": _BOOLEAN,
    "fmad": _BOOLEAN,
    "maxrregcount": r"\d{1,9}",
    "generate-line-info": None,
    "extra-device-vectorization": None,
    "restrict": None,
    "device-as-default-execution-space": None,
    "disable-warnings": None,
}
"""By its long name what an option's value has to be; None where it takes none."""
_SHORT = {
    "D": "define-macro",
    "U": "undefine-macro",
    "I": "include-path",
    "lineinfo": "generate-line-info",
    "default-device": "device-as-default-execution-space",
    "w": "disable-warnings",
}
_PARTS = re.compile(r"-(?P<letter>[DUI]) *(?P<text>.*)|--?(?P<name>[a-z_-]+)([= ](?P<value>.*))?")
_SHOWN = 100

_SPLICE = re.compile(rb"(?:\\|\?\?/)\r?\n")
_DIRECTIVE = re.compile(
    rb"(?:\#|%:|\?\?=)[\0\s]*(?:/\*|(?:include|import|embed)\w*)[\0\s]*|__has_include(?:_next)?"
    rb"[\0\s]*\([\0\s]*"
)
"""What reads another file, wherever it stands: within a comment or a text it is one too many. Bytes
of zero are white space to the compiler, and comments can hide where a directive begins.
"""
_HEADER = re.compile(rb'"([^"\n]{1,1024})"|<([^>\n]{1,1024})>')
_HEADERS = 200
_INCLUDE_BY_MACRO = {"thrust", "cub"}
"""Of the toolkit's headers (CUDA 13.0) only thrust's; cub includes them."""
_UNKNOWN = (OSError, ValueError, RuntimeError)
"""Of a path: it cannot be looked up, or is no path."""


class RefusedError(ValueError):
    """What may not be compiled: the message says why. `what`: as it stands in the scenario."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{cut(one_line(what), _SHOWN)}: {why}")
        self.what = what


@dataclass(frozen=True)
class Folders:
    """Where headers may lie: the folder of a scenario's file, None where there is none, and the
    CUDA toolkit's.
    """

    own: Path | None
    toolkit: tuple[Path, ...]

    @classmethod
    def of(cls, file: str, toolkit: Sequence[str]) -> Folders:
        path = Path(file)
        try:
            own = path.resolve(strict=True).parent if path.is_file() else None
        except _UNKNOWN:
            own = None
        return cls(own, tuple(map(Path, toolkit)))

    def inside(self, path: Path, what: str) -> Path:
        """Where a path leads to, links followed. RefusedError where that is outside."""
        with suppress(*_UNKNOWN):
            real = path.resolve()
            for folder in self.toolkit:
                if real.is_relative_to(folder.resolve()):
                    return real
            if self.own and real.is_relative_to(self.own):
                parts = real.relative_to(self.own).parts
                if not any(part.startswith(".") for part in parts):
                    return real
        raise RefusedError(
            what, "outside of the scenario's own folder, or hidden, and no header of the toolkit"
        )


def allowed_options(options: Sequence[str], folders: Folders) -> list[str]:
    """The same, each in the one form that the compiler gets: whatever else it would understand does
    not come through. A relative path is one of the scenario's folder. RefusedError.
    """
    allowed = []
    remaining = iter(options)
    for option in remaining:
        name, value = _parsed(option)
        wanted = _OPTIONS.get(name, "")
        if wanted and not value:
            value = next(remaining, "").strip()
        if name not in _OPTIONS or not value.isprintable() or not re.fullmatch(wanted or "", value):
            raise RefusedError(option, f"an option that is not allowed; those are {_listed()}")
        if name == "include-path":
            value = str(folders.inside((folders.own or Path("/")) / value, option))
        allowed.append(f"--{name}={value}" if wanted else f"--{name}")
    return allowed


def included_folders(options: Sequence[str]) -> list[Path]:
    """Those that allowed options name."""
    start = "--include-path="
    return [Path(option.removeprefix(start)) for option in options if option.startswith(start)]


def _parsed(option: str) -> tuple[str, str]:
    """The long name of an option, and its value."""
    parts = _PARTS.fullmatch(option)
    if parts is None:
        return "", ""
    name = parts["letter"] or parts["name"]
    return _SHORT.get(name, name), (parts["text"] or parts["value"] or "").strip()


def _listed() -> str:
    short = {long: f"-{name}" for name, long in _SHORT.items()}
    return ", ".join(short.get(name, f"--{name}") for name in _OPTIONS)


def check_includes(source: bytes, search: Sequence[Path], folders: Folders) -> None:
    """RefusedError where `source`, or a header of the scenario's own folder that it includes, would
    include a file outside. `search`: where the compiler looks for headers.
    """
    if len(source) > SOURCE_BYTES:
        raise RefusedError("its source", f"larger than {SOURCE_BYTES} bytes")
    texts: list[tuple[bytes, list[Path]]] = [(source, [])]
    seen: set[Path] = set()
    while texts:
        text, beside = texts.pop()
        for name in _included(text):
            for folder in [*beside, *search]:
                path = _own_header(name, folder, folders)
                if path is None or path in seen:
                    continue
                seen.add(path)
                if len(seen) > _HEADERS:
                    raise RefusedError(name, f"more than {_HEADERS} headers")
                texts.append((_read(path, name), [(folder / name).parent, path.parent]))


def _included(text: bytes) -> list[str]:
    """The names in all directives that include, each once."""
    text = _SPLICE.sub(b"", text)
    names: dict[str, None] = {}
    for directive in _DIRECTIVE.finditer(text):
        header = _HEADER.match(text, directive.end())
        if header is None or b"/*" in directive[0] or b"embed" in directive[0]:
            line = text[directive.start() : directive.end() + _SHOWN].partition(b"\n")[0]
            raise RefusedError(
                line.decode(errors="replace").strip(), 'write #include "name" or #include <name>'
            )
        names[os.fsdecode(header[header.lastindex or 0])] = None
        if len(names) > _HEADERS:
            raise RefusedError(header[0].decode(errors="replace"), f"more than {_HEADERS} headers")
    return list(names)


def _own_header(name: str, folder: Path, folders: Folders) -> Path | None:
    """The scenario's own file that a name stands for in a folder; None where that is a header of
    the toolkit, or nothing. RefusedError of everything else.
    """
    absolute = Path(name).is_absolute()
    trusted = folder in folders.toolkit and not absolute and ".." not in Path(name).parts
    try:
        exists = (folder / name).exists()
    except _UNKNOWN:
        exists = True
    if not exists and not absolute:
        return None
    # the toolkit's files may be links
    path = folder / name if trusted else folders.inside(folder / name, name)
    if not trusted and folders.own and path.is_relative_to(folders.own):
        return path
    if _INCLUDE_BY_MACRO.intersection(path.parts):
        raise RefusedError(name, "thrust and cub include what macros name, which may be any file")
    return None


def _read(path: Path, name: str) -> bytes:
    try:
        return read_regular(path, SOURCE_BYTES)
    except OSError as error:
        raise RefusedError(name, error.strerror or str(error)) from None
