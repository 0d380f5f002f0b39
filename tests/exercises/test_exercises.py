"""Exercises as a student meets them: handed out, judged, cheated at, solved. Real runs on the
CPU.
"""

import ast
import json
from pathlib import Path

import pytest
from workers import WORKERS

from gpulab.catalog.catalog import read_file
from gpulab.catalog.exercises import exercises, handed_out, solution
from gpulab.core.statuses import Status, Verdict

NAMES = list(exercises())
CHEATS = sorted((Path(__file__).parent / "cheats").glob("*.py"))


def test_there_are_five_with_a_solution_each():
    assert len(NAMES) == 5
    for name in NAMES:
        assert f'EXERCISE = "{name}"' in solution(name)
        assert "def step(" in solution(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_handed_out_is_the_task_and_the_slow_function(tmp_path, name):
    path = tmp_path / "mine.py"
    path.write_text(handed_out(name))
    tree = ast.parse(handed_out(name))
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["step"]
    assert "lab" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}, (
        "nothing of the judge"
    )
    entry = read_file(path)
    assert entry.error is None
    assert list(entry.scenario.variants) == ["given", "attempt"]
    assert entry.scenario.fail_below > 1
    assert entry.source == handed_out(name), "what is shown and kept is the student's file"
    assert entry.row.lesson.startswith(ast.get_docstring(tree).partition("\n")[0])


def call(lab, *arguments):
    return lab.call_over(WORKERS.command, *arguments)


def test_an_unknown_exercise_is_an_error_with_what_there_is(lab):
    path = lab.write("mine.py", 'EXERCISE = "row_norm"\ndef step(rows): pass\n')
    assert "did you mean row_norms?" in call(lab, "--run", path).stdout
    asked = call(lab, "--new", "--exercise", "row_norm")
    assert asked.code == 2
    assert "did you mean row_norms?" in asked.stderr


def test_a_student_writes_runs_and_only_then_sees_a_solution(lab):
    listed = call(lab, "--new", "--exercise").stdout.splitlines()
    assert [line.split()[0] for line in listed[: len(NAMES)]] == NAMES
    assert call(lab, "--new", "--exercise", "row_norms").code == 0
    assert call(lab, "--new", "--exercise", "row_norms").code == 2, "a file is never written over"
    assert call(lab, "--new", "--exercise", "row_norms", "--solution").code == 2
    path = lab.folder / "row_norms.py"
    path.write_text(
        path.read_text().replace("    result = torch.empty_like(rows)\n", "    return rows\n")
    )
    wrong = lab.run("row_norms.py", "--smoke")
    assert wrong.code == 4
    assert wrong.run["exercise"] == "row_norms"
    assert wrong.variant("attempt")["status"] == Status.WRONG
    assert wrong.run["method"]["rounds"] == 0, "nothing is left to compare"
    assert call(lab, "--new", "--exercise", "row_norms", "--solution").code == 0
    assert (lab.folder / "row_norms_solution.py").read_text() == solution("row_norms")
    assert_the_judge_has_no_hole(lab.run("row_norms_solution.py", "--smoke"))


def assert_the_judge_has_no_hole(finished):
    """Its own inputs can be exchanged: with another seed they have the same shapes."""
    assert finished.variant("attempt")["status"] == Status.OK
    assert "seed_changes" not in json.dumps(finished.run)


@pytest.mark.slow
def test_an_error_is_told_with_its_line_in_the_students_file(lab):
    text = handed_out("row_norms").replace(
        "    result = torch.empty_like(rows)\n", "    result = rows.nothing()\n"
    )
    path = lab.write("mine.py", text)
    finished = lab.run(path, "--smoke")
    assert finished.code == 3
    assert finished.variant("attempt")["line"] == 1 + text[: text.index("rows.nothing")].count("\n")


def test_a_file_without_the_function_says_so(lab):
    path = lab.write("mine.py", 'EXERCISE = "row_norms"\n\ndef other(rows):\n    return rows\n')
    finished = lab.run(path, "--smoke")
    assert finished.code == 3
    assert "'step'" in finished.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_handed_out_does_not_pass(lab, name):
    untouched = lab.run(lab.write("untouched.py", handed_out(name)), "--quick")
    assert untouched.code == 5, untouched.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_solution_passes(lab, name):
    finished = lab.run(lab.write("solution.py", solution(name)), time_s="5")
    assert finished.code == 0, finished.stderr
    assert finished.verdict("attempt") == Verdict.FASTER
    assert finished.comparison("attempt")["low"] > finished.run["fail_below"]
    assert_the_judge_has_no_hole(finished)


@pytest.mark.slow
@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.stem)
def test_a_cheat_is_refused(lab, path):
    finished = lab.run(lab.write("cheat.py", path.read_text()), time_s="2")
    assert finished.code in (4, 7), "wrong output, or an invalid measurement"
    assert (
        finished.variant("attempt")["status"] in (Status.WRONG, Status.INVALID)
        or finished.run["reason"]
    )
    assert finished.verdict("attempt") in (None, Verdict.WRONG, Verdict.INVALID)
