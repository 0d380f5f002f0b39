"""Programs of ranks that were written, with their truth, by somebody who had not seen the rules."""

import json
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "ranks"
TRUTH = json.loads((CASES / "truth.json").read_text())
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def said(module_lab):
    """What was said of the ranks of each program, by its file."""
    found = {}
    for case in TRUTH:
        words = case["command"][1:] if case["command"][0] == "python" else case["command"]
        flags = ("--profile", "off", "--telemetry", "off", "--json", "r.json")
        program = [str(CASES / word) if word == case["file"] else word for word in words]
        module_lab.call("--run", *flags, "--", sys.executable, *program)
        result = json.loads((module_lab.folder / "r.json").read_text())
        found[case["file"]] = result["runs"][0]["program"]["ranks"] or {}
    return found


def of_kind(kind):
    return [case for case in TRUTH if case["kind"] == kind]


def test_the_late_rank_is_named(said):
    late = {case["file"]: said[case["file"]].get("late") for case in of_kind("planted")}
    right = [case for case in of_kind("planted") if is_late(late[case["file"]], case["rank"])]
    assert len(right) >= 11, late


def is_late(late, rank):
    return late is not None and late["rank"] == rank


def test_the_row_that_proves_it_is_named(said):
    rows = {case["file"]: (said[case["file"]].get("late") or {}).get("row", "") for case in TRUTH}
    right = [case for case in of_kind("planted") if proves(rows[case["file"]], case)]
    assert len(right) >= 10, rows


def proves(row, case):
    if case["cause"] == "garbage collection":
        return row == case["cause"]
    lines = [f"{case['file']}:{line} " for line in case["line"]]
    return row.endswith(case["function"]) or any(line in row for line in lines)


def test_nobody_is_accused_where_nothing_is_planted(said):
    late = {case["file"]: said[case["file"]].get("late") for case in of_kind("clean")}
    assert not any(late.values()), late


def test_a_rank_that_is_killed_fails_leaves_or_hangs_is_named(said):
    for case in of_kind("ends"):
        job = said[case["file"]]
        found = job.get("ended") or job.get("missing")
        assert found is not None, case["file"]
        assert found["rank"] == case["rank"], case["file"]
