"""The catalog as a list: the user's own first, unreadable files of folders last, what a machine
lacks in brackets.
"""

import pytest
from found import finding
from run_reports import compared, run, two_variants, variant

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.view import age, by_topic, listing, mark
from gpulab.core.statuses import Conclusion, ExitCode, Verdict

ROWS = (
    ScenarioRow(name="train:step", title="train:step", own=True, function=True, path="train.py"),
    ScenarioRow(
        name="broken_own",
        error="line 2: a second Scenario; keep one",
        own=True,
        path="own/broken_own.py",
    ),
    ScenarioRow(name="batched", topic="compute", title="Batched: one call"),
    ScenarioRow(
        name="unreadable",
        error="line 1: syntax error; fix the syntax",
        path="scenarios/unreadable.py",
    ),
    ScenarioRow(
        name="kernels",
        topic="kernels",
        title="Kernels: in Triton",
        missing=finding("no_gpu", need="triton"),
    ),
    ScenarioRow(name="products", topic="compute", title="Products: in tiles"),
)


def test_own_files_come_first_and_unreadable_ones_of_folders_last():
    assert [(topic, [row.name for row in rows]) for topic, rows in by_topic(ROWS)] == [
        ("your own", ["train:step", "broken_own"]),
        ("compute", ["batched", "products"]),
        ("kernels", ["kernels"]),
        ("files that cannot be read", ["unreadable"]),
    ]


def test_a_line_a_scenario_under_its_topic():
    assert listing(ROWS).plain.splitlines() == [
        "your own",
        "  train:step",
        "  own/broken_own.py",
        "    line 2: a second Scenario; keep one",
        "compute",
        "  batched     Batched: one call",
        "  products    Products: in tiles",
        "kernels",
        "G kernels     Kernels: in Triton",
        "files that cannot be read",
        "  scenarios/unreadable.py",
        "    line 1: syntax error; fix the syntax",
        "",
        "3 of 6 scenarios can run here",
        "G needs a GPU: no NVIDIA device in this machine",
    ]
    assert listing([]).plain == ""


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (two_variants(best="new"), "1.50x"),
        (run(variant("old")), "timed"),
        (two_variants(comparisons=[compared(speedup=None, verdict=Verdict.INCONCLUSIVE)]), "?"),
        (two_variants(best="new", smoke=True), "smoke"),
        (
            two_variants(
                comparisons=[compared(speedup=1.003, verdict=Verdict.INCONCLUSIVE)], best="new"
            ),
            "1.00x?",
        ),
        (run(exit_code=ExitCode.FAILED, outcome=Conclusion.FAILED), "failed"),
        (run(exit_code=ExitCode.INTERRUPTED, outcome=Conclusion.INTERRUPTED), "stopped"),
        (
            two_variants(exit_code=ExitCode.INTERRUPTED, outcome=Conclusion.INTERRUPTED),
            "1.50x",
        ),
        (
            two_variants(best="new", exit_code=ExitCode.SLOWER, outcome=Conclusion.SLOWER),
            "1.50x",
        ),
        (run(exit_code=ExitCode.INVALID, outcome=Conclusion.INVALID), "invalid"),
        (run(exit_code=ExitCode.WRONG, outcome=Conclusion.WRONG), "wrong"),
    ],
)
def test_what_a_run_came_to_fits_into_seven_characters(report, text):
    assert mark(report).text == text
    assert len(text) <= 7


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (59, "now"),
        (61, "1 min"),
        (7200, "2 h"),
        (3 * 86400, "3 d"),
        (3e6, "5 w"),
        (1e12, "999 w"),
    ],
)
def test_how_long_ago_takes_six_characters(seconds, text):
    assert age(seconds) == text
    assert len(text) <= 6
