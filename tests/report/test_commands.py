"""Of several runs of one command: the exit code that counts."""

import pytest
from reports import run_report

from gpulab.core.statuses import ExitCode
from gpulab.report.commands import Sweep, combine


@pytest.mark.parametrize(
    ("codes", "expected", "outcome"),
    [
        ([0, 0], 0, "measured"),
        ([0, 6, 5], 5, "slower than required"),
        ([5, 7], 7, "invalid"),
        ([4, 7], 4, "wrong"),
        ([3, 4], 3, "failed"),
        ([3, 130], 130, "interrupted"),
        ([], 0, "measured"),
    ],
)
def test_a_command_has_the_exit_code_that_counts(codes, expected, outcome):
    runs = [run_report(scenario="x", exit_code=ExitCode(code)) for code in codes]
    command = combine(runs, {"torch": "2.9"})
    assert (command.exit_code, command.outcome, command.runs) == (expected, outcome, runs)
    assert (command.environment, command.sweeps, command.schema) == (
        {"torch": "2.9"},
        [],
        "gpulab.result/2",
    )


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 0), (7, 0), (130, 130)])
def test_a_final_that_came_to_nothing_takes_nothing_from_the_points(code, expected):
    runs = [run_report(scenario="x"), run_report(scenario="x")]
    sweep = Sweep(
        scenario="x", parameter="n", final=run_report(scenario="x", exit_code=ExitCode(code))
    )
    assert combine(runs, {}, [sweep]).exit_code == expected
