"""The benchmarks are run by hand and seldom: what they import is still there, and what they judge by
a report is what a report has.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import recorded

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
IMPORT_ALL = """
import importlib, sys
from pathlib import Path

for folder in map(Path, sys.argv[1:]):
    sys.path.append(str(folder))
    for path in sorted(folder.glob("*.py")):
        importlib.import_module(path.stem)
"""


def test_every_benchmark_is_imported():
    command = [sys.executable, "-c", IMPORT_ALL, BENCHMARKS, BENCHMARKS / "device"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def device(monkeypatch):
    """The folder of the scripts for a device can be imported from."""
    for folder in (BENCHMARKS, BENCHMARKS / "device"):
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
