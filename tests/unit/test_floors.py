"""Imports point down only and never in a circle, between folders and files: read from the text of
every file.
"""

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "gpulab"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if PACKAGE / "exercises" not in path.parents)
"""Exercises are scenarios, which import what those of authors do."""
CORE = {"scenario", "version", "limits"}
MAY_IMPORT = {
    "scenario": {"limits", "declared"},
    "declared": {"limits"},
    "limits": set(),
    "version": set(),
    "protocol": {*CORE, "protocol", "msgspec"},
    "analysis": {*CORE, "protocol", "analysis", "msgspec"},
    "report": {*CORE, "protocol", "analysis", "report", "msgspec"},
    "worker": {
        *CORE,
        "declared",
        "protocol",
        "analysis",
        "cuda",
        "worker",
        "msgspec",
        "torch",
        "numpy",
        "cupy",
    }
    | {"triton", "jax", "psutil"},
    "cuda": {*CORE, "protocol", "analysis", "cuda", "msgspec", "numpy", "torch", "cupy", "triton"},
    "telemetry": {*CORE, "protocol", "telemetry", "msgspec", "psutil", "pynvml"},
    "catalog": {*CORE, "declared", "protocol", "catalog", "msgspec"},
    "session": {*CORE, "declared", "protocol", "analysis", "report", "catalog", "session"}
    | {"msgspec", "platformdirs", "psutil"},
    "doctor": {*CORE, "protocol", "catalog", "session", "doctor", "msgspec"},
    "views": {*CORE, "protocol", "analysis", "report", "views", "msgspec", "rich", "matplotlib"}
    | {"markdown_it"},
    "headless": {
        *CORE,
        "protocol",
        "analysis",
        "report",
        "catalog",
        "session",
        "doctor",
        "views",
        "headless",
    }
    | {"cuda", "msgspec", "rich"},
    "tui": {
        *CORE,
        "protocol",
        "report",
        "catalog",
        "session",
        "doctor",
        "views",
        "tui",
        "rich",
        "textual",
    },
    "flags": {"headless", "flag_values"},
    "given_flags": {"flags"},
    "flag_values": {"declared", "limits"},
    "cli": {
        *CORE,
        "flags",
        "given_flags",
        "protocol",
        "catalog",
        "session",
        "views",
        "headless",
        "tui",
    },
    "__main__": {"cli"},
    "__init__": {*CORE, "session"},
}
"""What each folder, or file beside the folders, may import: of gpulab by its first part, of others
by their package.
"""


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_of(path): path for path in FILES}


@cache
def imports_of(path):
    """Modules that a file imports, wherever in it and whenever: at the top, in a function, for its
    types, by name.
    """
    return list(_imports(path))


def _imports(path):
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif (
            "import_module" in text
            and isinstance(node, ast.Constant)
            and isinstance(node.value, str)
        ):
            module = node.value.partition(":")[0]  # module, or module:function
            if module in MODULES and module != "gpulab":
                yield module
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in submodules if name in MODULES)
            if not all(name in MODULES for name in submodules):
                yield node.module


def circle(graph):
    """The nodes of a circle, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def part_of(module):
    """`analysis` of gpulab.stats.statistics, else the top-level package."""
    names = module.split(".")
    return names[1] if names[0] == "gpulab" and len(names) > 1 else names[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    relative = path.relative_to(PACKAGE)
    part = relative.parts[0] if len(relative.parts) > 1 else path.stem
    imported = {part_of(module) for module in imports_of(path)} - set(sys.stdlib_module_names)
    assert imported <= MAY_IMPORT[part]


def test_no_files_import_each_other_in_a_circle():
    graph = {module: set(imports_of(path)) & MODULES.keys() for module, path in MODULES.items()}
    assert circle(graph) is None
    assert circle({**graph, "gpulab.core.events": {"gpulab.core.wire"}}), "a circle would be found"


def test_no_folders_import_each_other_in_a_circle():
    def folder_of(path):  # of the package's own folder every file is a floor of its own
        return path if path.parent == PACKAGE else path.parent

    graph = {}
    for path in FILES:
        folder = folder_of(path)
        for other in (
            folder_of(MODULES[module]) for module in imports_of(path) if module in MODULES
        ):
            # A folder and those inside it are one room: its files are looked at above.
            if not folder.is_relative_to(other) and not other.is_relative_to(folder):
                graph.setdefault(str(folder), set()).add(str(other))
    assert circle(graph) is None


def test_nothing_imports_the_package_itself():
    """The root has what authors and scripts import, the session among it: importing it from inside
    is a circle.
    """
    assert [str(path) for path in FILES if "gpulab" in set(imports_of(path))] == []


def test_what_authors_import_needs_the_standard_library_only():
    files = {
        f"gpulab.{name}": PACKAGE / f"{name}.py" for name in ("scenario", "declared", "limits")
    }
    modules = {module for path in files.values() for module in imports_of(path)} - files.keys()
    assert {name.split(".")[0] for name in modules} <= set(sys.stdlib_module_names)


def test_no_folder_holds_thirty_files_and_none_is_a_drawer():
    folders = {path.parent for path in FILES}
    assert all(len(list(folder.glob("*.py"))) < 30 for folder in folders)
    assert not {path.stem for path in FILES} & {"utils", "util", "helpers", "misc", "common"}
