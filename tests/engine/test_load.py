"""A scenario's file imported in this process: what it must be, and what a failure says of where it
was.
"""

import inspect
import os
import py_compile
import sys
import traceback
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
import torch
from msgspec.structs import replace

from gpulab.core.jobs import FunctionFile, ScenarioFile, VariantInfo
from gpulab.core.statuses import FailureKind, Stage
from gpulab.engine.build.load import load
from gpulab.engine.processes.failure import failure
from gpulab.scenario import ScenarioError

SCENARIO = """
from gpulab import Scenario, Work
scenario = Scenario("x")

@scenario.variant
def only(lab):
    return Work(lambda: None)
"""


@pytest.fixture
def subject_of(tmp_path, monkeypatch):
    """Writes a file and makes a subject of it; what loading does to the interpreter is undone."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text, kind=ScenarioFile, names=("only",), file="subject.py"):
        path = tmp_path / file
        source = text if isinstance(text, str) else text.decode()
        path.write_bytes(source.encode())
        infos = tuple(VariantInfo(name=name) for name in names)
        digest = sha256(path.read_bytes()).hexdigest()
        return kind(
            scenario="subject", path=str(path), source_sha256=digest, source=source, variants=infos
        )

    return write


def test_a_syntax_error_in_an_imported_file_has_the_line_of_the_import(subject_of, tmp_path):
    (tmp_path / "helper.py").write_text("def f(:\n")
    subject = subject_of("import os\nimport helper\n" + SCENARIO)
    with pytest.raises(SyntaxError) as raised:
        load(subject)
    event = failure(raised.value, subject.path, None, Stage.LOAD)
    assert (event.kind, event.line, event.cause.code) == (FailureKind.ERROR, 2, "exception")
    assert "helper.py" in event.cause.values["message"]


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("x = 1\n", ("only",), "made 0 scenarios"),
        (SCENARIO + "other = Scenario('y')\n", ("only",), "made 2 scenarios"),
        (SCENARIO, ("only", "more"), "declares only, more"),
    ],
)
def test_a_file_that_is_not_what_its_text_declares_is_refused(subject_of, text, names, message):
    with pytest.raises(ScenarioError, match=message):
        load(subject_of(text, names=names))


def function_of(scenario, name="step"):
    return scenario.variants[name].function.args[0]


STEP = "def step():\n    return 'as it was read'\n"


@pytest.mark.parametrize("now", [STEP.replace("as it was read", "changed"), "(", None])
def test_what_was_read_runs_whatever_the_file_holds_by_now(subject_of, tmp_path, now):
    subject = subject_of(STEP, FunctionFile, ("step",))
    path = tmp_path / "subject.py"
    path.unlink() if now is None else path.write_text(now)
    step = function_of(load(subject))
    assert step() == "as it was read"
    assert inspect.getsource(step) == STEP
    assert inspect.getsource(sys.modules[step.__module__]) == STEP


@pytest.mark.parametrize("unchecked", [False, True])
def test_a_compiled_file_beside_it_never_runs_in_its_place(subject_of, tmp_path, unchecked):
    subject = subject_of(STEP, FunctionFile, ("step",))
    path, other = tmp_path / "subject.py", tmp_path / "other.py"
    other.write_text(STEP.replace("as it was read", "as it was compiled"))
    os.utime(other, (path.stat().st_atime, path.stat().st_mtime))
    mode = PycInvalidationMode.UNCHECKED_HASH if unchecked else PycInvalidationMode.TIMESTAMP
    planted = py_compile.compile(
        str(other), cache_from_source(str(path)), str(path), invalidation_mode=mode
    )
    data = bytearray(Path(planted).read_bytes())
    if not unchecked:
        data[12:16] = path.stat().st_size.to_bytes(4, "little")
    Path(planted).write_bytes(data)
    assert function_of(load(subject))() == "as it was read"


def test_a_coding_cookie_makes_no_code_of_a_comment(subject_of):
    evil = "# coding: utf-7\n# +AAo-step = lambda: 'of the comment'\n" + STEP
    assert function_of(load(subject_of(evil, FunctionFile, ("step",))))() == "as it was read"


@pytest.mark.parametrize(
    "text",
    ["\ufeff" + STEP, STEP.replace("\n", "\r\n"), STEP.replace("\n", "\r"), "\f" + STEP[:-1]],
)
def test_lines_of_a_traceback_are_those_of_the_text(subject_of, text):
    step = function_of(load(subject_of(text.replace("return", "raise"), FunctionFile, ("step",))))
    with pytest.raises(TypeError) as raised:
        step()
    assert raised.traceback[-1].lineno == 1
    assert traceback.extract_tb(raised.tb)[-1].line == "raise 'as it was read'"
    assert inspect.getsource(step).lstrip("\f").startswith("def step():\n    raise")


@pytest.mark.parametrize("line", ["from .helper import N", "from mine.inner.helper import N"])
def test_a_file_of_a_package_imports_from_it_as_pytest_has_it(subject_of, tmp_path, line):
    folder = tmp_path / "mine" / "inner"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (folder / "helper.py").write_text("N = 7\n")
    text = f"{line}\ndef step():\n    return N\n"
    subject = subject_of(text, FunctionFile, ("step",), "mine/inner/subject.py")
    try:
        step = function_of(load(subject))
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
            del sys.modules[name]
    assert step() == 7
    assert step.__module__ == "mine.inner._scenario_subject"


def test_a_relative_import_outside_of_a_package_says_what_to_write(subject_of):
    subject = subject_of("from .helper import N\n" + SCENARIO)
    with pytest.raises(ImportError) as raised:
        load(subject)
    event = failure(raised.value, subject.path, None, Stage.LOAD)
    assert event.line == 1
    assert event.cause.values["message"].endswith(
        "its folder is no package: import without the dot, or put an __init__.py there"
    )


def test_what_the_file_of_an_exercise_sets_for_the_whole_process_is_undone(subject_of):
    dtype = torch.get_default_dtype()
    answer = subject_of("import torch\ntorch.set_default_dtype(torch.float64)\ndef step(): pass\n")
    load(replace(answer, judge=SCENARIO, exercise="x"))
    assert torch.get_default_dtype() == dtype
