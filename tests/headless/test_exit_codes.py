"""What a run came to, against the speedup that is required of it: on recorded runs, and by the
command line.
"""

import pytest
from msgspec.structs import replace
from recorded import run_file
from scripted import SCENARIO, CommandLine

from gpulab.core.statuses import ExitCode
from gpulab.report.commands import combine
from gpulab.session.run import FileSource, Run


def report_against(name, required_speedup, folder):
    run = Run(FileSource(run_file(name, folder)), required_speedup)
    run.poll()
    assert run.ended
    return run.report


@pytest.mark.parametrize(
    ("name", "required", "code", "reason", "variant"),
    [
        ("batched_matmul-h100-1", None, ExitCode.MEASURED, None, None),
        ("batched_matmul-h100-1", 1.2, ExitCode.MEASURED, None, None),  # 39.3x, 38.9 to 39.6
        ("batched_matmul-h100-1", 39.2, ExitCode.INCONCLUSIVE, "not_shown_to_reach", "bmm"),
        ("batched_matmul-h100-1", 100.0, ExitCode.SLOWER, "below_required", "bmm"),
        ("fixes", 1.5, ExitCode.MEASURED, None, None),
        ("fixes", 2.5, ExitCode.SLOWER, "below_required", "first"),  # though all together reach it
        ("preallocation-h100-1", 0.9, ExitCode.MEASURED, None, None),
        ("lesson-small", 1.2, ExitCode.INCONCLUSIVE, "not_shown_to_reach", "deferred"),
        ("function", 1.2, ExitCode.INCONCLUSIVE, "nothing_compared", None),
        # What keeps a run from being measured comes before what is required of it.
        ("checks", 1.2, ExitCode.WRONG, None, None),
        ("standin-throttled", 1.2, ExitCode.INVALID, None, None),
        ("raises", 1.2, ExitCode.FAILED, "exception", "bad"),
        ("timeout", 1.2, ExitCode.FAILED, None, None),
        ("cancelled", 1.2, ExitCode.INTERRUPTED, None, None),
        ("killed", 1.2, ExitCode.INTERRUPTED, "no_end", None),
    ],
)
def test_the_required_speedup_decides_only_what_was_measured(
    tmp_path, name, required, code, reason, variant
):
    report = report_against(name, required, tmp_path)
    assert report.exit_code == code
    if reason is not None:
        assert (report.reason.code, report.reason.variant) == (reason, variant)


@pytest.mark.parametrize(
    ("codes", "first"),
    [
        ((0, 6, 5), ExitCode.SLOWER),
        ((0, 5, 7, 4), ExitCode.WRONG),
        ((7, 5), ExitCode.INVALID),
        ((4, 3, 7), ExitCode.FAILED),
        ((3, 130), ExitCode.INTERRUPTED),
        ((0, 0), ExitCode.MEASURED),
    ],
)
def test_of_several_runs_the_worst_counts(tmp_path, codes, first):
    report = report_against("fixes", None, tmp_path)
    command = combine([replace(report, exit_code=ExitCode(code)) for code in codes], {})
    assert command.exit_code == first


@pytest.mark.parametrize(
    ("required", "code", "message"),
    [
        ("1.9x", 0, "passed: the interval of after begins at"),
        ("2", 6, "\nafter is not shown to reach the required 2x"),
        ("100x", 5, "slower than required: the interval of after lies below the required 100x"),
    ],
)
def test_fail_below_is_the_exit_code_of_the_command(
    lab, monkeypatch, capsys, required, code, message
):
    lab.write("mine.py", SCENARIO)
    gpulab = CommandLine(lab, monkeypatch, capsys)
    process = gpulab(
        "--run", "mine.py", "--telemetry", "off", "--json", "out.json", "--fail-below", required
    )
    assert process.code == process.result["exit_code"] == code
    assert message in process.stdout
