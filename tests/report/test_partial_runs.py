"""A report of any part of a recorded run: of a run that goes on, and of a file that was cut
there.
"""

import msgspec
import pytest
from recorded import run_file

from gpulab.core.events import RunEnded, RunStarted
from gpulab.core.jobs import Follow, Program, RunRequest
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import ExitCode
from gpulab.features.program.events import ProcessFollowed
from gpulab.report.build import build_report, fold_all, new_state

CUT = [
    *("double_buffering-h100", "calibration", "cancelled", "crash-late", "fixes"),
    *("function", "timeout"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("phases", "standin-shared")),
]


@pytest.mark.parametrize("name", CUT)
def test_any_part_of_a_run_has_a_report(name, tmp_path):
    events = read_run_file(run_file(name, tmp_path)).events
    live = new_state()
    for count in range(len(events) + 1):
        check(
            build_report(live, live=True, now=live.t + 1.0),
            ended=live.outcome is not None,
            live=True,
        )
        check(build_report(live), ended=live.outcome is not None, live=False)
        if count < len(events):
            live.fold(events[count])


def check(report, *, ended, live):
    """What holds of every report."""
    assert report.under_way == (live and not ended)
    if report.under_way:
        assert (report.exit_code, report.reason) == (None, None)
    if not report.scenario:
        assert live or (report.exit_code, report.reason.code) == (ExitCode.FAILED, "never_started")
        return
    assert live or {variant.status for variant in report.variants}.isdisjoint({"pending"})
    if not live and not ended:
        assert (report.exit_code, report.reason.code) == (ExitCode.INTERRUPTED, "no_end")
    for comparison in report.comparisons:
        if comparison.speedup is not None:
            assert comparison.speedup.low <= comparison.speedup.value <= comparison.speedup.high
            assert comparison.pairs > 0
    for variant in report.variants:
        if variant.time_s and variant.time_s.low is not None:
            assert variant.time_s.low <= variant.time_s.value <= variant.time_s.high
    assert len(report.findings) == len({msgspec.json.encode(entry) for entry in report.findings})


def test_a_followed_program_without_variants_has_a_report():
    """No gpulab writes one; whoever reads a file of another must not fail for all others."""
    program = Program(scenario="p", path="p.py", source_sha256="0", variants=(), argv=("p.py",))
    followed = ProcessFollowed(pid=1, parent=0, python="3.11.7", torch="2.13.0")
    started = RunStarted(request=RunRequest(job=Follow(subject=program)), at="", host="")
    for events in ([], [followed], [followed, RunEnded(outcome="done")]):
        report = build_report(fold_all([started, *events]))
        assert report.program.code is None
        assert report.program.argv == ["p.py"]
