"""Imports point down only, and the parent never imports torch: read from the files, and looked at from outside."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gpulab"
MAY_IMPORT = {
    "model": {"model", "msgspec"},
    "worker": {"model", "worker", "gpulab", "msgspec", "torch", "numpy", "cupy", "triton", "jax", "psutil"},
    "telemetry": {"model", "telemetry", "msgspec", "psutil", "pynvml"},
    "run": {"model", "run", "gpulab", "msgspec", "platformdirs"},
    "views": {"model", "views", "msgspec", "rich"},
    "headless": {"model", "run", "views", "headless", "gpulab", "msgspec", "rich", "matplotlib"},
    "tui": {"model", "run", "views", "tui", "gpulab", "rich", "textual"},
    "": {"model", "run", "views", "headless", "tui", "cli", "gpulab"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "gpulab":
                yield from (f"gpulab.{name.name}" for name in node.names)
            yield node.module


def floor_of(module):
    """`model` of gpulab.model.stats, `gpulab` of the package's own names, else the top-level package."""
    parts = module.split(".")
    if parts[0] != "gpulab":
        return parts[0]
    known = {path.stem for path in PACKAGE.iterdir()}
    return parts[1] if len(parts) > 1 and parts[1] in known else "gpulab"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    floor = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else ""
    found = {floor_of(module) for module in imported(ast.parse(path.read_text()))}
    assert found - set(sys.stdlib_module_names) <= MAY_IMPORT[floor]


def test_what_authors_import_needs_the_standard_library_only():
    tree = ast.parse((PACKAGE / "model" / "scenario.py").read_text())
    assert {module.split(".")[0] for module in imported(tree)} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("arguments", [["--list"], ["--help"], ["--list", "--json"], ["--doctor"]])
def test_what_only_looks_imports_neither_torch_nor_textual(arguments):
    code = (
        "import sys, json\nfrom gpulab.cli import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    assert "gpulab.cli" in modules
    assert not modules & {"torch", "textual", "numpy", "pynvml", "psutil", "gpulab.worker"}
