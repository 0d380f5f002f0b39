"""The exercises that ship: what is handed out to a student, what judges the answer, and a reference
solution.

An exercise is a scenario with a slow function `step` and two variants, that function and the one of
the file that it judges. A student's file has the same function, and a line EXERCISE = "NAME" by
which it finds its judge.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from pathlib import Path

from gpulab.core.text import one_line
from gpulab.scenario import shown

_FOLDER = Path(__file__).parent.parent / "exercises"
_FUNCTION = "step"


class NoExerciseError(LookupError):
    """There is no exercise of that name; the message says which there are."""


def exercises() -> dict[str, str]:
    """The titles of all exercises by their names."""
    return {name: one_line(_lesson(name).partition("\n")[0]) for name in _files(_FOLDER)}


def judge(name: str) -> str:
    """The text of the scenario that judges answers to an exercise. NoExerciseError."""
    files = _files(_FOLDER)
    if name not in files:
        close = get_close_matches(name, files, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the exercises are {', '.join(files)}"
        raise NoExerciseError(f"there is no exercise {shown(name)}; {hint}")
    return files[name].read_text(encoding="utf-8")


def handed_out(name: str) -> str:
    """The text of a student's file at the beginning: the task, and the slow function.
    NoExerciseError.
    """
    text = judge(name)
    tree = ast.parse(text)
    function = next(
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION
    )
    lines = text.splitlines()
    slow = "\n".join(lines[function.lineno - 1 : function.end_lineno])
    return f'"""{_lesson(name)}"""\n\nimport torch\n\nEXERCISE = "{name}"\n\n\n{slow}\n'


def solution(name: str) -> str:
    """The text of a file with a reference solution. NoExerciseError."""
    judge(name)
    return _files(_FOLDER / "solutions")[name].read_text(encoding="utf-8")


def _lesson(name: str) -> str:
    return ast.get_docstring(ast.parse(judge(name)), clean=False) or ""


def _files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.py"))}
