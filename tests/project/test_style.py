"""ruff, mypy and import-linter's contracts are part of the tests."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import guide_examples
import pytest

ROOT = Path(__file__).parents[2]
LINT = str(Path(sys.executable).with_name("lint-imports"))
CACHE = Path(tempfile.gettempdir()) / f"gpulab-style-{os.getuid()}"
"""The checkout may be read-only."""


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-m", "ruff", "check", "."],
        [sys.executable, "-m", "ruff", "format", "--check", "."],
        pytest.param([sys.executable, "-m", "mypy", "gpulab"], marks=pytest.mark.slow),
        [LINT],
    ],
    ids=["ruff check", "ruff format", "mypy", "lint-imports"],
)
def test_the_code_passes(command, tmp_path):
    environment = {**os.environ, "RUFF_CACHE_DIR": str(CACHE), "MYPY_CACHE_DIR": str(CACHE)}
    command = [*command, "--cache-dir", str(CACHE)] if command == [LINT] else command
    if "mypy" in command:  # strict, and with the examples of the manual
        guide_examples.write_as_files(tmp_path)
        command = [*command, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_files_import_one_another():
    """In a circle, by imports inside of functions too: those for types alone are none."""
    import grimp  # where only a GPU is tested it is not installed

    graph = grimp.build_graph("gpulab", exclude_type_checking_imports=True, cache_dir=str(CACHE))
    left = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    while ends := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in ends}
    assert not left, f"these import one another, or what does: {sorted(left)}"


_STARTS = re.compile(
    r"\bPopen\(|subprocess\.(run|call|check_\w+)\(|os\.fork\(|\bPipe\(|socketpair\("
)
_OWN = ("proc/", "features/program/agent/")
"""Of these the second runs in a guest's process."""


def test_one_kit_starts_processes():
    starting = [
        str(file.relative_to(ROOT / "gpulab"))
        for file in (ROOT / "gpulab").rglob("*.py")
        if _STARTS.search(file.read_text())
    ]
    assert not [name for name in starting if not name.startswith(_OWN)]
