"""What a scenario printed: every line that is kept, how many are not, and what failures left
below.
"""

from found import finding
from run_reports import run, variant

from gpulab.core.events import VariantFailed
from gpulab.core.statuses import Conclusion, FailureKind, Stage
from gpulab.report.report import LogReport
from gpulab.tui.panels.log import log


def test_lines_left_out_are_counted_where_they_were():
    report = run(variant(), log=LogReport(head=["first", "second"], skipped=12345, tail=["last"]))
    assert log(report).plain == "first\nsecond\n... 12,345 lines left out ...\nlast\n"


def test_under_way_its_end_is_shown_and_long_lines_are_cut():
    report = run(log=LogReport(head=["x" * 999] * 300, tail=["end"]), outcome=Conclusion.UNDER_WAY)
    lines = log(report).plain.splitlines()
    assert (len(lines), lines[-1], set(map(len, lines[:-1]))) == (200, "end", {200})


def test_a_failure_has_its_kind_its_cause_and_its_traceback():
    failure = VariantFailed(
        variant="bad",
        kind=FailureKind.CRASH,
        stage=Stage.MEASURE,
        cause=finding("crashed", signal="SIGSEGV", meaning="Segmentation fault"),
        traceback="Traceback ...\n",
    )
    whole_run = VariantFailed(
        variant=None, kind=FailureKind.KILLED, stage=Stage.END, cause=finding("supervisor_gone")
    )
    assert log(run(failures=[failure, whole_run])).plain == (
        "bad: crash, the worker crashed: SIGSEGV (Segmentation fault)\nTraceback ...\n"
        "the run: killed, the supervisor exited without a status\n"
    )


def test_silence_is_said():
    assert log(run()).plain == "it printed nothing"
    assert log(run(outcome=Conclusion.UNDER_WAY)).plain == "nothing printed so far"
