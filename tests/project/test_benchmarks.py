"""The benchmarks are run by hand and seldom: what they import is still there, and what they judge by
a report is what a report has.
"""

import ast
import symtable
from importlib.util import find_spec
from pathlib import Path

import pytest
import recorded

import gpulab

ROOT = Path(__file__).parents[2]
BENCHMARKS = (ROOT / "benchmarks", ROOT / "benchmarks" / "device")
TESTS = [
    ROOT / "tests" / name
    for name in ("", "features/findings", "following", "gauntlet", "scenarios/triton")
]


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


@pytest.fixture
def device(monkeypatch):
    """The folder of the scripts for a device can be imported from."""
    for folder in BENCHMARKS:
        monkeypatch.syspath_prepend(folder)


def test_a_partition_holds_where_an_unreliable_goodput_says_which_other_time_it_took(
    device, tmp_path
):
    import lesson_lines

    report = recorded.report_json("channels_last-h100-1", tmp_path)
    goodput = lesson_lines.goodputs_of(report)["channels_last"]
    assert [reason["code"] for reason in goodput["reasons"]] == ["goodput_uncertain"]
    assert lesson_lines.adds_up(goodput)
    assert not lesson_lines.adds_up({**goodput, "reasons": []})
    assert not lesson_lines.adds_up({**goodput, "reasons": [{"code": "recordings_differ"}]})
    assert not lesson_lines.adds_up({**goodput, "partition": {"useful": 0.9}})


@pytest.mark.parametrize(
    ("code", "left_s", "judgement"),
    [(1, 500, "NO"), (None, 500, "NO"), (None, 67, "not run")],
)
def test_a_line_that_the_budget_cuts_off_was_not_run(device, code, left_s, judgement):
    import verify

    entry = verify.no_end(verify.LINES["memory"], code, left_s)
    assert (entry.judgement, entry.line) == (judgement, "memory")
