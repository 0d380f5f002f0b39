"""A name says what a thing is: how many bindings of the project are placeholders, and where.

`python tests/unit/test_names.py [FOLDER]` prints the share of each folder.
"""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PLACEHOLDERS = {
    *(
        "one",
        "ones",
        "found",
        "told",
        "known",
        "mine",
        "said",
        "seen",
        "made",
        "kept",
        "left",
        "taken",
        "of",
    ),
    *("why", "what", "thing", "heard"),
}
MOST = 0.01


def bindings(tree):
    """Every name that is bound: variables, parameters, functions, classes, exceptions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or (
            isinstance(node, ast.ExceptHandler) and node.name
        ):
            yield node.name


def count(folder):
    """(placeholders, bindings) of all Python files of a folder."""
    names = [
        name
        for path in sorted(folder.rglob("*.py"))
        for name in bindings(ast.parse(path.read_text()))
    ]
    return sum(name.lstrip("_") in PLACEHOLDERS for name in names), len(names)


@pytest.mark.parametrize("folder", ["gpulab", "scenarios", "tests"])
def test_names_say_what_things_are(folder):
    placeholders, names = count(ROOT / folder)
    assert names > 500, "the folder has names to look at"
    assert placeholders <= MOST * names


def test_placeholders_would_be_counted():
    tree = ast.parse(
        "def told(of):\n    for one in of:\n        found, total = one, 0\n    return total"
    )
    assert [name for name in bindings(tree) if name in PLACEHOLDERS] == [
        "told",
        "of",
        "one",
        "found",
    ]


if __name__ == "__main__":
    for part in sys.argv[1:] or ["gpulab", "scenarios", "tests"]:
        vague, every = count(ROOT / part)
        print(f"{part}: {vague} of {every} bindings, {vague / every:.2%}")
