"""A scenario's file imported in this process: what it must be, and what a failure says of where it was."""

import sys
from hashlib import sha256

import pytest

from gpulab.protocol.jobs import FunctionFile, ScenarioFile, VariantInfo
from gpulab.protocol.statuses import FailureKind, Stage
from gpulab.scenario import ScenarioError
from gpulab.worker.building.load import load
from gpulab.worker.process.failure import failure

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

    def write(text, kind=ScenarioFile, names=("only",)):
        path = tmp_path / "subject.py"
        path.write_text(text)
        infos = tuple(VariantInfo(name=name) for name in names)
        digest = sha256(path.read_bytes()).hexdigest()
        return kind(scenario="subject", path=str(path), source_sha256=digest, variants=infos)

    return write


def test_a_syntax_error_in_an_imported_file_has_the_line_of_the_import(subject_of, tmp_path):
    (tmp_path / "helper.py").write_text("def f(:\n")
    subject = subject_of("import os\nimport helper\n" + SCENARIO)
    with pytest.raises(SyntaxError) as raised:
        load(subject)
    event = failure(raised.value, subject.path, None, Stage.LOAD)
    assert (event.kind, event.line, event.cause.code) == (FailureKind.ERROR, 2, "exception")
    assert "helper.py" in event.cause.values["message"]


def test_an_exit_at_import_has_its_line(subject_of):
    subject = subject_of("import sys\nsys.exit('no arguments')\n" + SCENARIO)
    with pytest.raises(SystemExit) as raised:
        load(subject)
    event = failure(raised.value, subject.path, None, Stage.LOAD)
    assert (event.kind, event.line, event.cause.values["message"]) == (FailureKind.EXIT, 2, "sys.exit('no arguments')")


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


def test_a_file_that_changed_since_it_was_read_is_refused(subject_of, tmp_path):
    subject = subject_of(SCENARIO)
    (tmp_path / "subject.py").write_text(SCENARIO + "\n")
    with pytest.raises(ScenarioError, match="changed since it was read"):
        load(subject)


def test_plain_functions_become_variants_that_are_called_with_nothing(subject_of):
    scenario = load(subject_of("def step():\n    return 7\n", FunctionFile, ("step",)))
    work = scenario.variants["step"].function(None)
    assert work.step() == 7
    with pytest.raises(ScenarioError, match="not a function"):
        load(subject_of("step = 1\n", FunctionFile, ("step",)))
