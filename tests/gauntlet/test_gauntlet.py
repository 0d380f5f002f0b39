"""Every way to look fast that was met, each caught by the check that is named in its file; and an honest twin of each.

`cheats/NAME.py` says in its last line what catches it, `honest/NAME.py` does something that looks alike and is right:
nothing may accuse it. What runs on a GPU alone has its lines in `tests/gpu/verify.py`.
"""

import ast
import json
import re
from functools import partial
from pathlib import Path

import pytest
from preloaded_worker import preloaded_workers
from together import together

from gpulab.cli import main
from gpulab.report.trust_checks import DOUBTS
from gpulab.session.session import Session

FOLDER = Path(__file__).parent
CHEATS = sorted(path.stem for path in (FOLDER / "cheats").glob("*.py"))
HONEST = sorted(path.stem for path in (FOLDER / "honest").glob("*.py"))
GROUPS = [*together(FOLDER / "honest" / f"{name}.py" for name in HONEST)]
TOGETHER = {tuple(names): (text, names) for text, names in GROUPS if len(names) > 1}
ALONE = [names[0] for _, names in GROUPS if len(names) == 1]
QUICK = ("constant_answer", "mean_passes")
"""Twins with their own baselines that are looked at in every test run; of the others the cheats are."""
MANY = 10
PROFILED = ("silent_fallback", "faster_than_physics")
"""Cheats whose runs need a profile, or ceilings that are measured twice."""
LONG = ("copy_of_an_eighth", "phase_by_stack")
"""Those that take longest, of which others are like."""


def slow(value, *, when):
    return pytest.param(value, marks=[pytest.mark.slow] * when)


WAITED_FOR = "being waited for"
"""Nothing is wrong with it but the time that it would have had."""
SAID = re.compile(r"said as (\w+)")
NOISY = {"control", "processes", "contention", "clocks"}
"""Checks of the machine."""
HARMLESS = {"lower_precision", "outside_earlier_runs", *(code for code, kind in DOUBTS.items() if kind in NOISY)}
"""Findings of a variant, or of the machine, that accuse nobody."""


@pytest.fixture(scope="module")
def workers(module_lab):
    with preloaded_workers(module_lab.folder, module_lab.env) as command:
        yield command


@pytest.fixture
def run(module_lab, workers, monkeypatch, capsys):
    """What a run of a file has to say of each variant but the reference."""

    def run(path, *, whole=True):
        for name, value in module_lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(module_lab.folder)
        monkeypatch.setattr("gpulab.session.launch.Session", partial(Session, command=workers))
        declares_work = any(work in path.read_text() for work in ("flops=", "bytes="))
        size = ["--time", "1" if declares_work else "0.5"]  # from a second on, roofs are measured too
        if not (whole or declares_work):
            size = ["--smoke"]  # the checks are those of any run, in one process
        profile = [] if path.stem == "silent_fallback" else ["--profile", "off"]
        options = ["--device", "cpu", *size, *profile, "--telemetry", "off", "--json", "result.json"]
        main(["--run", str(path), *options])
        capsys.readouterr()
        run = json.loads((module_lab.folder / "result.json").read_text())["runs"][0]
        return {variant["name"]: Result(run, variant) for variant in run["variants"][1:]}

    return run


class Result:
    """One variant of a run, as its JSON has it."""

    def __init__(self, run, variant):
        self.run, self.variant = run, variant
        self.comparison = next((entry for entry in run["comparisons"] if entry["variant"] == variant["name"]), {})
        self.checks = (self.comparison.get("trust") or {}).get("checks", [])

    @property
    def caught_by(self):
        """What refuses it: checks that failed, and the codes of other reasons."""
        failed = {check["kind"] for check in self.checks if check["state"] == "failed"} - NOISY
        if self.variant["status"] in ("wrong", "invalid"):
            failed.add(self.variant["reason"]["code"])
        of_run = [*self.run["findings"], *filter(None, [self.run["reason"]])]
        return failed | ({finding["code"] for finding in of_run} & {"lab_functions_replaced"})

    @property
    def said(self):
        """Codes of what is said of it, or of the whole run."""
        doubts = [
            check["result"] for check in self.checks if check["state"] == "doubtful" and check["kind"] not in NOISY
        ]
        findings = [*self.run["findings"], *self.run["explanations"], *doubts]
        return {finding["code"] for finding in findings if finding["variant"] in (self.variant["name"], None)}

    @property
    def speedup(self):
        before, after = (variant["time_s"] for variant in (self.run["variants"][0], self.variant))
        return before["median"] / after["median"] if before and after else None

    def __repr__(self):
        name, verdict = self.variant["name"], self.comparison.get("verdict")
        return f"{name}: caught by {self.caught_by}, said {self.said}, {verdict} {self.speedup}"

    def is_accused_of_nothing(self):
        assert self.caught_by == set(), self
        assert self.said <= HARMLESS, self
        assert self.variant["status"] == "ok", self
        assert self.variant["unchecked"] is None, self


def named_checks(name):
    """What the file of a cheat says that catches it."""
    docstring = ast.get_docstring(ast.parse((FOLDER / "cheats" / f"{name}.py").read_text()))
    return docstring.rpartition("Caught by: ")[2].split(" or ")


def test_every_cheat_has_a_twin():
    assert CHEATS == HONEST
    assert len(CHEATS) >= 28


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["smoke", "whole"])
@pytest.mark.parametrize("name", [slow(name, when=name in (*PROFILED, *LONG)) for name in CHEATS])
def test_a_cheat_is_caught_by_the_check_named(run, name, whole):
    named = named_checks(name)
    at_random = "timed steps" in named  # one process makes too few of these
    result = run(FOLDER / "cheats" / f"{name}.py", whole=whole or at_random)["suspect"]
    if named == [WAITED_FOR]:
        assert result.caught_by == set(), result
        assert result.speedup < 4, result  # and 50 or more where it is not waited for
    elif said := SAID.fullmatch(named[0]):
        assert said[1] in result.said, result
    else:
        assert result.caught_by & set(named), result
        # A check that proves nothing leaves the speedup, and the word "unchecked" in place of a verdict.
        assert result.comparison.get("speedup") is None or result.comparison["verdict"] == "unchecked", result


@pytest.mark.parametrize(
    "group", [slow(group, when=len(group) > MANY) for group in TOGETHER], ids=lambda group: f"{len(group)} of them"
)
def test_twins_with_one_baseline_are_accused_of_nothing(run, module_lab, group):
    text, names = TOGETHER[group]
    path = module_lab.folder / "twins.py"
    path.write_text(text)
    results = run(path)
    assert sorted(results) == sorted(names)
    for result in results.values():
        result.is_accused_of_nothing()


@pytest.mark.parametrize("name", [slow(name, when=name not in QUICK) for name in ALONE])
def test_a_twin_with_its_own_baseline_is_accused_of_nothing(run, name):
    run(FOLDER / "honest" / f"{name}.py")["suspect"].is_accused_of_nothing()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HONEST if name not in ALONE])
def test_every_other_twin_is_accused_of_nothing_in_a_run_of_its_own(run, name):
    run(FOLDER / "honest" / f"{name}.py")["suspect"].is_accused_of_nothing()
