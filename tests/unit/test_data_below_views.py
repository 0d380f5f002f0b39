"""Below the views there are codes and numbers: no sentence, no number with its digits, but for what
is listed here.
"""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "gpulab"
FOLDERS = ("protocol", "analysis", "report", "worker", "telemetry", "catalog", "session", "doctor")
SENTENCE = re.compile(r"[^\W\d_]+[,;:]? [^\W\d_]+[,;:]? [^\W\d_]+")
"""Three words in a row."""
NAMES = {
    "host to device",
    "device to host",
    "out of memory",
    "slower than required",
    "thermal slowdown",
    "thermal slowdown by the hardware",
    "streams and threads",
    "context and output",
    "functions of torch",
    "one value along axis",
    "another seed, by its own build",
    "a few elements",
}
"""Words of closed lists that are three words or more: roofs, statuses, conclusions, checks, the
driver's reasons, settings, null answers, changes of inputs.
"""
EXEMPT = {
    "catalog/catalog.py": (
        "messages of ScenarioNotFoundError and UnreadableError, which carry text; topics of lessons"
    ),
    "catalog/exercises.py": "a message of NoExerciseError, which carries text",
    "catalog/reader.py": "the keywords that a message of UnreadableError lists",
    "session/requests.py": "parts of messages of UsageError, which carries text",
    "session/launch.py": "a message of UsageError, which carries text",
    "doctor/doctor.py": "commands for a shell, which are the same in every language",
    "worker/calibration/kernels.py": "CUDA C++",
    "worker/calibration/probes.py": "names of ceilings with their sizes",
    "worker/process/channel.py": "last words of a process that has lost its event pipe, to its own stderr",
    "worker/process/device.py": "parts of a message of DeviceError, which is shown as that of any exception is",
    "worker/process/failure.py": "phrases that are looked for in messages of other libraries",
}
"""Files that have such texts, and why they may."""


def parents_of(tree):
    parents = {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            parents[child] = node
    return parents


def is_raised(node, parents):
    """Whether it is a part of a `raise`: exceptions carry text."""
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.Raise):
            return True
    return False


def sentences(tree):
    """Texts that look like sentences, are no docstrings and not raised."""
    parents = parents_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            documents = isinstance(parents[node], ast.Expr)
            looks_like_one = SENTENCE.search(node.value) and node.value.strip() not in NAMES
            if looks_like_one and not documents and not is_raised(node, parents):
                yield node.value


def formats(tree):
    """Format specifications in f-strings, and calls of `format`; messages of exceptions have them
    too.
    """
    parents = parents_of(tree)
    for node in ast.walk(tree):
        in_text = isinstance(node, ast.FormattedValue) and node.format_spec is not None
        called = isinstance(node, ast.Call) and "format" in (
            getattr(node.func, "id", ""),
            getattr(node.func, "attr", ""),
        )
        if (in_text or called) and not is_raised(node, parents):
            yield ast.unparse(node)


def trees_of(folder):
    """The trees of all files of a folder, by their paths in the package."""
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in paths}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_number_is_formatted(folder):
    assert [(name, text) for name, tree in trees_of(folder).items() for text in formats(tree)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_there_is_no_sentence(folder):
    trees = trees_of(folder)
    assert trees
    assert [
        (name, text)
        for name, tree in trees.items()
        if name not in EXEMPT
        for text in sentences(tree)
    ] == []


@pytest.mark.parametrize("name", EXEMPT)
def test_an_exemption_is_still_needed(name):
    assert list(sentences(ast.parse((PACKAGE / name).read_text())))


def test_a_sentence_and_a_format_would_be_seen():
    tree = ast.parse(
        'def f(x):\n    """A docstring of some words."""\n    note = f"still drifting by {x:.1%} '
        'at its end"\n    raise ValueError(f"no such thing as {x:g}")\n'
    )
    assert list(sentences(tree)) == ["still drifting by ", " at its end"]
    assert len(list(formats(tree))) == 1
