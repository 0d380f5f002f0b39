"""Which code two sides ran: the files of each that were imported or read, whether they differ, and
what both imported from one place although it differs.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpulab.core.files import files_below, read_regular
from gpulab.core.findings import Finding
from gpulab.core.limits import SOURCE_BYTES
from gpulab.features.compare.differences import changed_lines
from gpulab.features.compare.findings import dependencies_changed, imported_from_one_place
from gpulab.features.compare.report import ChangedLine
from gpulab.session.interleaved import Probe
from gpulab.session.revisions import top_level
from gpulab.session.sides import Measured, digest

_DEPENDENCIES = (
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "environment.yml",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "constraints.txt",
)
_NATIVE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".inl", ".pyx", ".rs", ".so")


@dataclass(frozen=True)
class Ran:
    """The code that a side ran: SHA-256 by the paths of its project's files, in its folder."""

    side: Measured
    probe: Probe
    files: Mapping[str, str]


def ran(side: Measured, probe: Probe) -> Ran:
    """Return what ran on a side that was probed."""
    libraries = [_real(folder) for folder in probe.libraries]
    read = [os.path.join(side.working_folder, file) for file in probe.files]  # noqa: PTH118
    paths = {_real(path) for path in (str(side.file), *probe.modules.values(), *read)}
    root = side.root.resolve()
    files = {}
    for path in sorted(paths):
        is_library = any(path.is_relative_to(folder) for folder in libraries if folder != root)
        if is_library or not path.is_relative_to(root) or path.suffix in (".pyc", ".pyo"):
            continue
        if path.is_file():
            files[str(path.relative_to(root))] = digest(path)
    return Ran(side, probe, files)


def is_same_code(before: Ran, after: Ran) -> bool:
    """Return whether nothing that ran differs, although the sides are two: what another process
    reads is not known.
    """
    first, second = before.side, after.side
    is_one = first.revision == second.revision and (first.revision or first.file == second.file)
    if is_one or first.python != second.python or first.functions != second.functions:
        return False
    started = before.probe.processes or after.probe.processes
    if started or before.files != after.files:
        return False
    return _native_sources(first.root) == _native_sources(second.root)


def changed_lines_elsewhere(before: Ran, after: Ran) -> list[ChangedLine]:
    """Return the lines that differ in other Python files than the step's own."""
    lines = []
    own = [str(each.side.file.relative_to(each.side.root)) for each in (before, after)]
    for name in sorted({**before.files, **after.files}):
        if name in own or not name.endswith(".py"):
            continue
        if before.files.get(name) != after.files.get(name):
            texts = [_text(each.side.root / name) for each in (before, after)]
            lines += changed_lines(*texts, file=name)
    return lines


def _text(path: Path) -> str:
    """Return what a source file holds; nothing where there is none, or it cannot be read."""
    try:
        return read_regular(path, SOURCE_BYTES).decode()
    except (OSError, ValueError):
        return ""


def _native_sources(root: Path) -> dict[str, str]:
    """SHA-256 of what a compiler may read without a word to Python, such as the headers of an
    extension that is built as it is imported.
    """
    return {
        str(path.relative_to(root)): digest(path)
        for path in files_below(root, [])
        if path.suffix in _NATIVE and path.is_file()
    }


def findings_of(before: Ran, after: Ran) -> Iterator[Finding]:
    """Yield findings of why the comparison is not one of what differs between the sides."""
    if before.side.root == after.side.root:
        return
    places: dict[str, list[str]] = {}
    for name, file in after.probe.modules.items():
        if before.probe.modules.get(name) == file and _differs(name, file, before, after):
            place = file.removesuffix(f"{_path_of(name)}.py").removesuffix(f"{_path_of(name)}/")
            places.setdefault(str(Path(place).parent if place == file else place), []).append(name)
    for place, modules in places.items():
        yield imported_from_one_place(modules=modules[:10], place=place)
    if before.side.python == after.side.python:
        changed = [name for name in _DEPENDENCIES if _needs(before, name) != _needs(after, name)]
        if changed:
            yield dependencies_changed(files=changed)


def _differs(name: str, file: str, before: Ran, after: Ran) -> bool:
    """Return whether a module from outside of both sides is one of the project, and differs."""
    path = _real(file)
    roots = before.side.root.resolve(), after.side.root.resolve()
    if any(path.is_relative_to(root) for root in roots):
        return False
    stem = _path_of(name)
    candidates = [f"{stem}.py", f"{stem}/__init__.py", f"src/{stem}.py", f"src/{stem}/__init__.py"]
    checkout = top_level(path.parent)
    if checkout is not None and not any("site-packages" in part for part in path.parts):
        candidates.insert(0, str(path.relative_to(checkout)))
    for candidate in candidates:
        first, second = (digest(root / candidate) for root in roots)
        if first or second:
            return first != second
    return False


def _path_of(module: str) -> str:
    return module.replace(".", "/")


def _needs(each: Ran, name: str) -> Any:
    """Return a file's words on the packages that a project needs; None if there is no file."""
    path = each.side.root / name
    if name != "pyproject.toml":
        return digest(path)
    try:
        document = tomllib.loads(read_regular(path, SOURCE_BYTES).decode())
    except (OSError, ValueError, RecursionError):
        return digest(path)
    project = document.get("project", {})
    keys = ("dependencies", "optional-dependencies", "requires-python")
    return [document.get("build-system"), *(project.get(key) for key in keys)]


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))
