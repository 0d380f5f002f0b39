"""The text of a scenario's file, and its tree; paths from a user, looked at without an
error.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gpulab.core.limits import TEXT_LENGTH
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
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(
            line, f"cannot be read: not UTF-8 ({error.reason})", "save it as UTF-8"
        ) from None


def module_of(source: str) -> ast.Module:
    """The tree of a file's text. UnreadableError where Python cannot parse it."""
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


def parsed(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """The tree of a text, whose warnings are for those who run it. Of text, unlike bytes, no coding
    cookie is read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode=mode)
