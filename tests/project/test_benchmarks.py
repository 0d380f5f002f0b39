"""The benchmarks are run by hand and seldom: what they import is still there."""

import ast
import symtable
from importlib.util import find_spec
from pathlib import Path

import gpulab

ROOT = Path(__file__).parents[2]
BENCHMARKS = (ROOT / "benchmarks", ROOT / "benchmarks" / "device")
TESTS = [ROOT / "tests" / name for name in ("", "following", "gauntlet", "scenarios/triton")]


def source_of(module):
    """The file of a module of this project, as the benchmarks set `sys.path`; None of others."""
    path = module.replace(".", "/")
    names = (f"{path}.py", f"{path}/__init__.py")
    files = [folder / name for folder in (ROOT, *BENCHMARKS, *TESTS) for name in names]
    return next(filter(Path.is_file, files), None)


def is_there(module, name):
    top = module.partition(".")[0]
    if source_of(top) is None:
        return find_spec(top) is not None
    file = source_of(module)
    if file is None or name is None:
        return file is not None
    if module == "gpulab" and hasattr(gpulab, name):  # some are imported when they are asked for
        return True
    symbols = symtable.symtable(file.read_text(), file.name, "exec").get_symbols()
    own = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    return name in own or source_of(f"{module}.{name}") is not None


def imported(file):
    """(module, name) of all that a file imports, wherever in it. It is read: torch would come with
    it.
    """
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def test_what_the_benchmarks_import_is_there():
    files = [file for folder in BENCHMARKS for file in folder.glob("*.py")]
    names = {pair for file in files for pair in imported(file)}
    assert len(names) > 100
    assert [pair for pair in names if not is_there(*pair)] == []
