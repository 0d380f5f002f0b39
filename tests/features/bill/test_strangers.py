"""Programs that somebody wrote who had not seen this code, with what is slow in them: the bill names
the line in its first two rows.
"""

import json
from pathlib import Path

import pytest
from test_bill import bills

PROGRAMS = Path(__file__).parents[2] / "following" / "bill"
TRUTH = json.loads((PROGRAMS / "truth.json").read_text())
NO_CAUSES = {"import", "preempted", "start of the interpreter", "end of the process"}


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["name"])
def test_the_line_is_in_the_first_two_rows(lab, truth):
    for file in PROGRAMS.glob("*.py"):
        lab.write(file.name, file.read_text())
    _, (bill, *_) = bills(lab, f"{truth['name']}_flawed.py", "--profile", "off")
    rows = [row for row in bill["rows"] if row["cause"] not in NO_CAUSES]
    named = [
        Path(row["file"]).name == truth["file"] and row["function"] == truth["function"]
        for row in rows[:2]
    ]
    assert any(named)
    unbooked_s = sum(row["seconds"] for row in rows if row["cause"] == "unbooked")
    assert unbooked_s < 0.03 * bill["wall_s"]
