"""Programs that somebody wrote who had not seen this code, with what is slow in them: the bill names
the line in its first two rows. What their authors wrote instead once it was mended stands in
`truth.json`.
"""

import json
import timeit
from pathlib import Path

import pytest
import torch
from test_bill import bills

PROGRAMS = Path(__file__).parents[2] / "following" / "bill"
TRUTH = json.loads((PROGRAMS / "truth.json").read_text())
NO_CAUSES = {"import", "preempted", "start of the interpreter", "end of the process"}


def denormals_are_slow():
    """Whether this CPU takes over twice as long for them, in the best of some tries."""

    def best_s(value):
        numbers = torch.full((10_000,), value)
        return min(timeit.repeat(lambda: numbers * 0.5, number=20, repeat=20))

    return best_s(1e-40) > 2 * best_s(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["name"])
def test_the_line_is_in_the_first_two_rows(lab, truth):
    if truth["name"] == "echo_stream" and not denormals_are_slow():
        pytest.skip(
            "what was planted costs nothing here: this CPU is as fast with denormal numbers"
        )
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
