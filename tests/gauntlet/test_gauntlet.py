"""Every way to look fast that was met, each caught by the check that is named in its file; and an honest twin of each.

`cheats/NAME.py` says in its last line what catches it, `honest/NAME.py` does something that looks alike and is right:
nothing may accuse it. What runs on a GPU alone has its lines in `tests/gpu/verify.py`.
"""

import ast
import re
from functools import partial
from pathlib import Path

import pytest
from preloaded_worker import preloaded_workers

from gpulab.cli import main
from gpulab.protocol.run_file import read_run_file
from gpulab.protocol.statuses import CheckKind, Status
from gpulab.report.state import fold_all
from gpulab.session.session import Session

FOLDER = Path(__file__).parent
CHEATS = sorted(path.stem for path in (FOLDER / "cheats").glob("*.py"))
HONEST = sorted(path.stem for path in (FOLDER / "honest").glob("*.py"))
WAITED_FOR = "being waited for"
"""Nothing is wrong with it but the time that it would have had."""
BOTH = ("reference", "suspect")
SAID = re.compile(r"said as (\w+)")
HARMLESS = {"lower_precision", "control_differs", "few_epochs"}
"""Findings of a variant, or of the machine, that accuse nobody."""


@pytest.fixture(scope="module")
def workers(module_lab):
    with preloaded_workers(module_lab.folder, module_lab.env) as command:
        yield command


@pytest.fixture
def run(module_lab, workers, monkeypatch, capsys):
    """The state of a finished run of a file."""

    def run(path):
        for name, value in module_lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(module_lab.folder)
        monkeypatch.setattr("gpulab.session.launch.Session", partial(Session, command=workers))
        file = module_lab.folder / "run.jsonl"
        file.unlink(missing_ok=True)
        options = ("--device", "cpu", "--time", "0.5", "--profile", "off", "--telemetry", "off", "--json")
        main(["--run", str(path), *options, "--output", str(file)])
        capsys.readouterr()
        return fold_all(read_run_file(file).events)

    return run


def caught_by(state):
    """What a run has against the suspect: checks that failed, and the codes of other reasons."""
    suspect = state.variants["suspect"]
    checks = {kind.value for kind, examined in suspect.examined.items() if not examined.ok}
    checks |= {kind.value for kind, examined in state.examined.items() if not examined.ok}
    if suspect.checked is not None and not suspect.checked.ok:
        checks.add(CheckKind.OUTPUTS.value)
    reasons = [suspect.reason, *state.invalid] if suspect.status != Status.OK else state.invalid
    return checks | {reason.code for reason in reasons if reason}


def said_of(state):
    """Codes of what is said of the suspect, or of the whole run."""
    return {finding.code for finding in state.findings if finding.variant in ("suspect", None)}


def named_checks(name):
    """What the file of a cheat says that catches it."""
    docstring = ast.get_docstring(ast.parse((FOLDER / "cheats" / f"{name}.py").read_text()))
    return docstring.rpartition("Caught by: ")[2].split(" or ")


def test_every_cheat_has_a_twin():
    assert CHEATS == HONEST
    assert len(CHEATS) >= 28


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_caught_by_the_check_named(run, name):
    state = run(FOLDER / "cheats" / f"{name}.py")
    named = named_checks(name)
    if named == [WAITED_FOR]:
        assert caught_by(state) == set()
        reference, suspect = (state.variants[name].wall_s / state.variants[name].blocks for name in BOTH)
        assert suspect > 0.7 * reference
    elif said := SAID.fullmatch(named[0]):
        assert caught_by(state) == set()
        assert said[1] in said_of(state)
    else:
        assert caught_by(state) & set(named), (caught_by(state), said_of(state))


@pytest.mark.parametrize("name", HONEST)
def test_its_twin_is_accused_of_nothing(run, name):
    state = run(FOLDER / "honest" / f"{name}.py")
    assert caught_by(state) == set()
    assert said_of(state) <= HARMLESS
    assert state.variants["suspect"].status in (Status.OK, Status.PENDING)
    assert state.variants["suspect"].unchecked is None
