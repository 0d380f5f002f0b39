"""`--compare` of two revisions, files or environments: both are measured, and which code that was is
shown.
"""

import hashlib
import json
import signal
import subprocess
import venv

import msgspec
import pytest

from gpulab.features.compare.report import ComparisonReport
from gpulab.features.compare.words import answers

STEP = """
    import helper

    def step():
        return helper.work()
"""
HELPER = """
    def work():
        x = 1
        for _ in range({count}):
            x = (x * 1103515245 + 12345) % 2147483648
        return x {what}
"""


class Project:
    """A repository, and `gpulab --compare` in it."""

    def __init__(self, lab):
        self.lab = lab
        self.git("init", "-q")
        self.commit("base", step=STEP, helper=HELPER.format(count=3000, what="> 0"))

    def git(self, *arguments):
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *arguments]
        subprocess.run(command, cwd=self.lab.folder, env=self.lab.env, check=True)

    def commit(self, tag, **files):
        for name, text in files.items():
            self.lab.write(f"{name}.py", text)
        self.git("add", "*.py")
        self.git("commit", "-qm", tag)
        self.git("tag", tag)


@pytest.fixture
def project(lab):
    return Project(lab)


@pytest.fixture
def compared(lab):
    def call(before, after, *arguments, code=0):
        """The report in its JSON."""
        finished = lab.call_over(None, "--compare", before, after, "--json", *arguments)
        assert finished.code == code, finished.stderr
        return json.loads(finished.stdout)

    return call


def contents(folder):
    """All files with their contents, those of git too."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def codes_of(report):
    (comparison,) = report["comparisons"]
    return [finding["code"] for finding in comparison["findings"]]


def test_a_slower_revision_is_found_and_nothing_of_the_checkout_is_touched(project, lab):
    project.commit("slow", helper=HELPER.format(count=6000, what="> 0"))
    lab.write("helper.py", "an edit that nobody committed")
    temporary = lab.folder.with_name(f"{lab.folder.name}-temporary")
    temporary.mkdir()
    lab.env["TMPDIR"] = str(temporary)
    before = contents(lab.folder)
    finished = lab.call(
        *("--compare", "git:base", "git:slow", "--json", "--fail-if-slower"),
        *("--fail-below", "0.9x", "--", "step.py:step"),
    )
    assert finished.code == 5, finished.stderr
    assert contents(lab.folder) == before
    assert [*temporary.iterdir()] == []
    report = json.loads(finished.stdout)
    (comparison,) = report["comparisons"]
    (row,) = comparison["rows"]
    assert (row["verdict"], row["pairing"]) == ("slower", "paired")
    assert row["ratio"]["value"] == pytest.approx(0.5, rel=0.15)
    sides = comparison["a"], comparison["b"]
    assert all(len(side["revision"]) == 40 for side in sides)
    assert [{*side["files"]} for side in sides] == [{"helper.py", "step.py"}] * 2
    changed = dict(sides[0]["files"].items() - sides[1]["files"].items())
    assert [*changed] == ["helper.py"]
    assert {each["file"] for each in comparison["changed_lines"]} == {"helper.py"}
    assert [(gate["kind"], gate["outcome"]) for gate in report["gates"]] == [
        ("fail below", "fails"),
        ("fail if slower", "fails"),
    ]


def test_what_changes_no_file_that_runs_is_not_measured(project, compared, lab):
    project.commit("docs", unused="x = 1")
    lab.write("gpulab.toml", "fail_below = 2\n[step]\nfail_below.step = 2")
    report = compared("git:base", "git:docs", "--fail-if-slower", "--", "step.py:step")
    assert codes_of(report) == ["nothing_changed"]
    assert report["comparisons"][0]["rows"] == []
    assert report["gates"] == []


def test_a_revision_that_computes_something_else_is_wrong(project, compared):
    project.commit("other", helper=HELPER.format(count=3000, what="+ 1"))
    report = compared("git:base", "git:other", "--", "step.py:step", code=4)
    (row,) = report["comparisons"][0]["rows"]
    assert (row["verdict"], row["ratio"]) == ("wrong", None)
    assert row["reason"]["code"] == "outputs_differ"
    ((_, first),) = answers(msgspec.convert(report, ComparisonReport))
    assert first.startswith("step: wrong: the outputs of the two sides differ: ")


GENERATORS = """
    def yielded():
        yield from range(9)
        {last}

    def returned():
        yield 1
        return {value}

    async def awaited():
        yield 1
        {last}

    def same():
        yield 1
"""


def test_what_generators_yield_and_return_is_compared(lab, compared):
    lab.write("before.py", GENERATORS.format(last="yield 9", value=1))
    lab.write("after.py", GENERATORS.format(last="yield 8", value=2))
    names = "yielded,returned,awaited,same"
    report = compared(f"before.py:{names}", f"after.py:{names}", "--time", "1", code=4)
    rows = report["comparisons"][0]["rows"]
    assert [row["verdict"] == "wrong" for row in rows] == [True, True, True, False]


def test_a_module_that_both_sides_import_from_one_place_is_a_finding(project, compared, lab):
    folder = lab.folder / "lib"
    folder.mkdir()
    lab.env["PYTHONPATH"] = str(folder)
    lab.write("lib/module.py", "N = 1000")
    lab.write("step.py", "import module\n\ndef step():\n    return sum(range(module.N))")
    project.git("add", "lib", "step.py")
    project.commit("library")
    lab.write("lib/module.py", "N = 2000")
    project.git("add", "lib")
    project.commit("changed")
    options = ("--time", "0.1", "--", "step.py:step")
    report = compared("git:library", "git:changed", *options)
    assert "imported_from_one_place" in codes_of(report)


def test_two_environments_differ_in_what_they_have(compared, lab):
    sides = []
    for name, version in (("one", "1.0"), ("two", "2.0")):
        venv.create(lab.folder / name, symlinks=True)
        (packages,) = (lab.folder / name).glob("lib/*/site-packages")
        (packages / "dependency.py").write_text(f"__version__ = {version!r}")
        sides.append(f"python:{lab.folder / name}")
    functions = "def step():\n    return sum(range(1000))\n\ndef other():\n    return 1"
    lab.write("step.py", f"import dependency\n\n{functions}")
    options = ("--time", "0.1", "--", "step.py:step,other")
    report = compared(*sides, *options)
    assert "environment_changed" in codes_of(report)
    (difference,) = report["comparisons"][0]["differences"]
    assert (difference["what"], difference["a"], difference["b"]) == ("dependency", "1.0", "2.0")
    assert [row["variant"] for row in report["comparisons"][0]["rows"]] == ["step", "other"]


def test_two_files_and_a_step_that_fails(lab):
    lab.write("a.py", "def step():\n    return 1")
    lab.write("b.py", "def step():\n    raise ValueError('no')")
    gate = ("--fail-below", "step=2x")
    finished = lab.call_over(None, "--compare", "a.py:step", "b.py:step", *gate)
    assert finished.code == 3
    assert "b.py:step: ValueError: no" in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("git:base", "git:none", "--", "step.py:step"), "git:none: no such revision"),
        (("git:base", "git:base"), "of what?"),
        (("git:base", "git:base", "--", "step.py"), "write step.py:FUNCTION"),
        (("step.py:step,other", "step.py:step"), "step.py:step,other names 2 functions"),
        (("git:base", "nowhere", "--", "step.py:step"), "no such folder"),
        (("git:base", "git:base", "--", "step.py:step", "--time"), "flags come before"),
        (("python:none", "python:none", "--", "step.py:step"), "no such Python"),
    ],
)
def test_usage(project, arguments, message):
    finished = project.lab.call_over(None, "--compare", *arguments)
    assert finished.code == 2
    assert message in finished.stderr


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_behind(project, lab):
    temporary = lab.folder.with_name(f"{lab.folder.name}-temporary")
    temporary.mkdir()
    lab.env["TMPDIR"] = str(temporary)
    process = lab.start("--compare", "git:base", "git:base", "--time", "60", "--", "step.py:step")
    assert process.stderr.readline()
    assert process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert [*temporary.iterdir()] == []


@pytest.mark.slow
def test_variants_of_a_scenario(project, compared):
    scenario = """
        \"\"\"Sum: two ways.\"\"\"
        import torch
        from gpulab import Scenario, Work
        scenario = Scenario(topic="x", params={{"n": 100000}})

        @scenario.variant
        def one(lab, n):
            x = torch.rand(n, device=lab.device)
            return Work(lambda: (x * 2).sum())

        @scenario.variant
        def other(lab, n):
            x = torch.rand(n, device=lab.device)
            return Work(lambda: {other})
    """
    project.commit("first", ways=scenario.format(other="x.sum() * 2"))
    project.commit("second", ways=scenario.format(other="((x + x) + x - x).sum()"))
    report = compared("git:first", "git:second", "--device", "cpu", "--", "ways.py")
    rows = {row["variant"]: row for row in report["comparisons"][0]["rows"]}
    assert rows["other"]["verdict"] == "slower"
    assert rows["one"]["verdict"] in ("same", "inconclusive")
    assert rows["other"]["own_speedup"]["value"] > 0
