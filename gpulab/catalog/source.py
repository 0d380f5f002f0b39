"""The text of a scenario's file, and its tree; paths from a user, looked at without an
error.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from gpulab.core.limits import SOURCE_BRACES, SOURCE_BYTES, SOURCE_TOKENS, TEXT_LENGTH
from gpulab.core.text import BYTE_ORDER_MARK, cut, plain


def real_path(path: Path) -> Path:
    """The path from the root, without links. Itself where there is none: in a folder that was
    deleted.
    """
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


def is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or in a folder that may not be read
        return False


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def python_files(folder: Path) -> list[Path]:
    """The Python files of a folder, sorted; none where it cannot be read."""
    try:
        return sorted(folder.glob("*.py"))
    except OSError:
        return []


def expanded(path: Path) -> Path:
    """The path with the home folder for its ~; itself where there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def shown_path(path: Path | str) -> str:
    """A path as a line of valid text: what is not a character is escaped."""
    return " ".join(plain(str(path).encode(errors="backslashreplace").decode()).splitlines())


_NEWLINE = re.compile(r"\r\n?|\n")
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_COMMENT = re.compile(r"[ \t\f]*(#.*)?")
_UTF_8 = re.compile(r"utf[-_]?8([-_].*)?", re.IGNORECASE)
_WORD = r"\w+|[^\w\s]|\n"
_STRING = r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:""")?|"(?:[^"\\\n]|\\[\s\S])*+"?'
_QUOTED = r"""(?P<quote>"{3}|'{3}|"(?!"")|'(?!''))(?:[^"'\\]|\\[^"'])*+(?P=quote)"""
_CODE = rf"""(?P<code>(?i:[ft]r?|r[ft])(?:{_QUOTED}|["'][\s\S]*))"""
"""An f-string. One with quotes in it goes on to the end: since Python 3.12 they may open strings
within its braces.
"""
_TOKEN = re.compile("|".join((_CODE, _STRING, _STRING.replace('"', "'"), "#.*", _WORD)))
_F_STRING = re.compile(r"\b(f|fr|rf)[\"']", re.IGNORECASE)


class UnreadableError(Exception):
    """A file's text is wrong; the message says where, and how to fix it."""

    def __init__(self, line: int, message: str, fix: str) -> None:
        message, fix = cut(message, TEXT_LENGTH), cut(fix, TEXT_LENGTH)
        super().__init__(f"line {line}: {message}; {fix}")
        self.line, self.message, self.fix = line, message, fix


def source_of(data: bytes) -> str:
    """The text of a file. It keeps a byte order mark, so that it encodes to the same bytes.
    UnreadableError.
    """
    try:
        source = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(
            line, f"cannot be read: not UTF-8 ({error.reason})", "save it as UTF-8"
        ) from None
    first, second, *_ = [*_NEWLINE.split(source.removeprefix(BYTE_ORDER_MARK), maxsplit=2), ""]
    for line, text in enumerate((first, second) if _COMMENT.fullmatch(first) else (first,), 1):
        cookie = _COOKIE.match(text)
        if cookie and not _UTF_8.fullmatch(cookie[1]):
            name = cut(cookie[1], TEXT_LENGTH)
            raise UnreadableError(
                line, f"the file says that its coding is {name}", "save it as UTF-8 and declare it"
            )
    return source


def module_of(source: str) -> ast.Module:
    """The tree of a file's text. UnreadableError where Python cannot parse it, or would need
    seconds and gigabytes.
    """
    # A token has a character at least: this counts in large files only.
    if len(source) > SOURCE_TOKENS and next(islice(_tokens(source), SOURCE_TOKENS, None), None):
        raise UnreadableError(
            1, f"more than {SOURCE_TOKENS} words, marks and lines", "split the file"
        )
    # Before Python 3.12 each braced part of an f-string walks over all of that string.
    braces = source.count("{")
    slow = sys.version_info < (3, 12) and braces * len(source) > SOURCE_BRACES * SOURCE_BYTES
    if slow and _F_STRING.search(source):
        raise UnreadableError(
            1, f"{braces} braces in a file of {len(source)} characters", "split the file"
        )
    try:
        return parsed(source.removeprefix(BYTE_ORDER_MARK), "exec")  # type: ignore[return-value]
    except SyntaxError as error:
        raise UnreadableError(
            error.lineno or 1, f"syntax error: {error.msg}", "correct this line"
        ) from None
    except (RecursionError, MemoryError):
        raise UnreadableError(
            1, "not readable as Python: it is nested too deeply", "simplify it"
        ) from None
    except ValueError as error:
        raise UnreadableError(
            1, f"not readable as Python: {error}", "is this a Python file?"
        ) from None


def assigned(node: ast.stmt) -> tuple[Sequence[ast.expr], ast.expr | None]:
    """Return what a statement assigns to, and the value; nothing where it is no assignment."""
    if isinstance(node, ast.Assign):
        return node.targets, node.value
    if isinstance(node, ast.AnnAssign):
        return [node.target], node.value
    return [], None


def _tokens(source: str) -> Iterator[re.Match[str]]:
    """Yield what Python takes its time for: a string and a comment are one, the words of an
    f-string are code.
    """
    for token in _TOKEN.finditer(_NEWLINE.sub("\n", source)):
        yield from re.finditer(_WORD, token[0]) if token["code"] else (token,)


def parsed(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """The tree of a text, whose warnings are for those who run it. Of text, unlike bytes, no coding
    cookie is read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode=mode)
