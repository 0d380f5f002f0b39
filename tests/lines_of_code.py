"""Lines of code, and the ceilings that `budget.toml` sets them: `python tests/lines_of_code.py`.

    python tests/lines_of_code.py                   the lines of each folder beside its ceiling
    python tests/lines_of_code.py --store           lowers the ceilings to today's lines
    python tests/lines_of_code.py --store --raise   and raises those that today's lines are above

Lines of code have no blank line, no comment and no docstring, and the formatter has been over them.
"""

import ast
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = ROOT / "budget.toml"
LONG = 600
"""Lines of any kind: a file with more has a ceiling of its own."""
_DATA = ("*.toml", "kernels.json")
_HEAD = """\
# The ceilings of lines of code, and of files that are long: tests/project/test_budget.py holds them.
# After a cut: python tests/lines_of_code.py --store
"""


@cache
def lines_of_file(path):
    """The same of a file, which is read once for all folders that it is in."""
    return lines_of_code(path.read_text())


def lines_of_code(text):
    """How many lines of a Python file are code."""
    docstrings, strings = set(), set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docstrings.update(_lines_of(node))
            case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
                strings.update(_lines_of(node))
    code = {number for number, line in enumerate(text.split("\n"), 1) if _says_something(line)}
    return len((code | strings) - docstrings)


def _lines_of(node):
    return range(node.lineno, node.end_lineno + 1)


def _says_something(line):
    """Whether it is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def lines_of_data(text):
    """How many lines of a file that decides something neither are blank nor a comment."""
    return sum(map(_says_something, text.split("\n")))


def folder_lines(folder):
    """The lines of code of a folder with all that is in it."""
    lines = sum(map(lines_of_file, folder.rglob("*.py")))
    data = (path for pattern in _DATA for path in folder.rglob(pattern))
    return lines + sum(lines_of_data(path.read_text()) for path in data)


def today():
    """What each folder, and each long file, has: {"folders": {path: lines}, "files": ...}."""
    gpulab = ROOT / "gpulab"
    parts = [*gpulab.glob("*/"), *(gpulab / "features").glob("*/")]
    folders = [gpulab, *parts, *(ROOT / name for name in ("tests", "benchmarks", "scenarios"))]
    lines = {_name(folder): folder_lines(folder) for folder in folders}
    files = {
        _name(path): length
        for name in ("gpulab", "tests", "benchmarks", "scenarios")
        for path in (ROOT / name).rglob("*.py")
        if (length := path.read_text().count("\n")) > LONG
    }
    return {"folders": {name: count for name, count in lines.items() if count}, "files": files}


def budget():
    """The ceilings as they are stored."""
    return tomllib.loads(BUDGET.read_text())


def store(found, ceilings, *, may_raise=False):
    """Writes today's lines as ceilings, those above their ceiling only where they `may_raise`."""
    text = _HEAD
    for kind, lines in found.items():
        old = ceilings.get(kind, {})
        kept = {name: min(count, old.get(name, 0)) for name, count in lines.items()}
        new = lines if may_raise else kept
        text += f"\n[{kind}]\n"
        text += "".join(f'"{name}" = {new[name]}\n' for name in sorted(new) if new[name])
    BUDGET.write_text(text)


def _name(path):
    return path.relative_to(ROOT).as_posix()


def main(words):
    found = today()
    if "--store" in words:
        stored = budget() if BUDGET.exists() else {}
        store(found, stored, may_raise="--raise" in words)
    ceilings = budget()
    for kind, lines in found.items():
        for name in sorted(lines):
            print(f"{name:52}{lines[name]:8,}{ceilings[kind].get(name, 0):8,}")


if __name__ == "__main__":
    main(sys.argv[1:])
