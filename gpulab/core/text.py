"""Text that others wrote, made safe for where it goes: a terminal or an image, a line of one, JSON,
a file's name.

Scenarios, file names, messages of exceptions and run files of strangers hold whatever their authors
like. What a reader cannot see is replaced: control characters drive a terminal, bidirectional and
zero-width ones make a text read as another, line separators forge lines, surrogates cannot be
encoded at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from gpulab.core.limits import FILE_NAME_BYTES

BYTE_ORDER_MARK = "\ufeff"
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/]+[0-~])?"
)
_BOILERPLATE = re.compile(
    r"\s*(?:Search for `cuda\w+' in \S+ for more information\."
    r"|CUDA kernel errors might be asynchronously reported at some other API call[^\n]*?incorrect\."
    r"|For debugging consider passing CUDA_LAUNCH_BLOCKING=1\.?"
    r"|Compile with `?TORCH_USE_CUDA_DSA`? to enable device-side assertions\.)"
)
_NOT_OF_FILE_NAMES = re.compile(r"[^\w.+-]")


class _Replacements(dict[int, str | int]):
    """By code point: itself where a reader sees it, a replacement character where not."""

    def __missing__(self, code: int) -> str | int:
        mark = chr(code)
        visible = mark.isprintable() or mark in "\t\n" or unicodedata.category(mark) == "Zs"
        self[code] = code if visible else "\ufffd"
        return self[code]


class _Escapes(dict[int, str | int]):
    """By code point: itself where a reader sees it or it ends a line, an escape of JSON where
    not.
    """

    def __missing__(self, code: int) -> str | int:
        visible = _REPLACEMENTS[code] == code or code == ord("\n")
        self[code] = code if visible else _escaped(chr(code))
        return self[code]


_REPLACEMENTS = _Replacements()
_JSON_ESCAPES = _Escapes()


def plain(text: str) -> str:
    """The text without escape sequences; whatever is neither visible nor a space, tab or newline is
    replaced.
    """
    return text if text.isprintable() else _ESCAPES.sub("", text).translate(_REPLACEMENTS)


def one_line(text: str) -> str:
    """The same as one line: every run of blanks and newlines is a space."""
    return " ".join(plain(text).split())


_MARKUP = re.compile(r"([\\`<>\[\]|]|\*(?=\S)|(?<!\w)_(?=\w)|&(?=[#\w])|^[#+=~-])", re.ASCII)
"""What means something in a text of Markdown, or at its beginning."""
_REFERENCES = re.compile(r"@(?=\w)|#(?=\d)|:(?=//)|(?<!\w)www(?=\.)", re.IGNORECASE)
"""What becomes a mention, a reference or a link though nothing marks it."""


def markdown_text(text: str) -> str:
    """A text of one line as Markdown that shows it as it is, and mentions nobody."""
    escaped = _MARKUP.sub(r"\\\1", one_line(text))
    return _REFERENCES.sub(r"\g<0><!-- -->", escaped)


def fenced(lines: Iterable[str], language: str) -> list[str]:
    """A block of Markdown that no line of it ends."""
    listed = [plain(line) for line in lines]
    longest = max((len(run) for run in re.findall("`+", "\n".join(listed))), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *listed, fence]


def without_boilerplate(text: str) -> str:
    """A CUDA error without the advice that torch repeats below each."""
    return _BOILERPLATE.sub("", text)


def cut(text: str, most: int) -> str:
    """At most so many characters of the text, and how many were left out; whole where that would
    save none.
    """
    shortened = f"{text[:most]}... ({len(text) - most} more characters)"
    return min(text, shortened, key=len)


def plain_json(data: bytes) -> bytes:
    """Encoded JSON in which invisible characters stand as escapes: it decodes to the same."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return data.decode().translate(_JSON_ESCAPES).encode()


def file_name(text: str, most: int = FILE_NAME_BYTES) -> str:
    """The text as a part of a file's name, on every system: no separator, and at most so many
    bytes.
    """
    name = _NOT_OF_FILE_NAMES.sub("_", text)
    return name.encode(errors="ignore")[:most].decode(errors="ignore")


def _escaped(mark: str) -> str:
    units = mark.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def short_name(name: str) -> str:
    """A kernel's name without its templates, arguments and namespaces, which fill a page."""
    if name.startswith(("Memcpy", "Memset")):
        return name.partition(" (")[0]
    if "<" not in name and "(" not in name:
        return name
    outside = ""
    depth = 0
    for letter in name.replace("(anonymous namespace)::", ""):
        depth += (letter in "<(") - (letter in ">)")
        if not depth and letter not in ">)":
            outside += letter
    functor = re.search(r"(\w+(?:Functor|Ops)\w*|\w+_kernel_cuda|\w+_kernel_impl)", name)
    short = outside.removeprefix("void ").rpartition("::")[2].strip() or name
    if functor is None or functor.group(1) in short:
        return short
    return f"{short} {functor.group(1)}"
