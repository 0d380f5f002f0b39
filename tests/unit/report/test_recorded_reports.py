"""Recorded runs: the numbers that the version which wrote them reported, and a report of any part of them."""

import msgspec
import pytest
from recorded import NAMES, earlier_reports, report_of, run_file

from gpulab.protocol.run_file import read_run_file
from gpulab.report.build import build_report
from gpulab.report.exit_codes import ExitCode
from gpulab.report.state import RunState, fold_all

CUT = ["calibration", "cancelled", "crash-late", "fixes", "function", "phases", "standin-shared", "timeout"]
RENAMED = {
    "promised": "product",
    "ran": "running",
    "reports": "figures",
    "same": "no_effect_reason",
    "soak": "solo_run",
}
WORDS = {"reason", "why", "warnings", "how", "lost", "unchecked", "unsupported", "run_file"}
"""Sentences then, findings now: the views have tests of what they say."""
CHANGED = {
    ("calibration", "/title"): "",
    ("grows", "/variants/2/stage"): "build",
}
"""Values that are others now, on purpose: a calibration has no title, and what ran out of memory says where."""


def differences(name, earlier, report, path=""):
    """Places where a report has another value than an earlier one had."""
    if (name, path) in CHANGED:
        earlier = CHANGED[name, path]
    if isinstance(earlier, dict) and isinstance(report, dict):
        for key, value in earlier.items():
            if key not in WORDS:
                yield from differences(name, value, report.get(RENAMED.get(key, key), "missing"), f"{path}/{key}")
    elif isinstance(earlier, list) and isinstance(report, list) and len(earlier) == len(report):
        for index, (before, after) in enumerate(zip(earlier, report, strict=True)):
            yield from differences(name, before, after, f"{path}/{index}")
    elif isinstance(earlier, float) and isinstance(report, float):
        if report != pytest.approx(earlier, rel=1e-9):
            yield path, earlier, report
    elif earlier != report:
        yield path, earlier, report


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_has_the_numbers_of_the_version_that_wrote_it(name, tmp_path):
    report = msgspec.to_builtins(report_of(name, tmp_path))
    assert list(differences(name, earlier_reports()[name], report)) == []


def test_a_difference_would_be_found():
    earlier = {"time_s": 1.0, "ran": {"": 0.5}, "variants": [1, 2]}
    assert list(differences("x", earlier, {"time_s": 1.1, "running": {"": 0.5}, "variants": [1]})) == [
        ("/time_s", 1.0, 1.1),
        ("/variants", [1, 2], [1]),
    ]


@pytest.mark.parametrize("name", CUT)
def test_any_part_of_a_run_has_a_report(name, tmp_path):
    events = read_run_file(run_file(name, tmp_path)).events
    live = RunState()
    for count in range(len(events) + 1):
        check(build_report(live, live=True, now=live.t + 1.0), ended=live.outcome is not None, live=True)
        check(build_report(fold_all(events[:count])), ended=live.outcome is not None, live=False)
        if count < len(events):
            live.fold(events[count])


def check(report, *, ended, live):
    """What holds of every report."""
    if not report.scenario:
        assert (report.exit_code, report.reason.code) == (ExitCode.FAILED, "never_started")
        return
    assert report.under_way == (live and not ended)
    assert live or {variant.status for variant in report.variants}.isdisjoint({"pending"})
    if not live and not ended:
        assert (report.exit_code, report.reason.code) == (ExitCode.INTERRUPTED, "no_end")
    for comparison in report.comparisons:
        if comparison.speedup is not None:
            assert comparison.low <= comparison.speedup <= comparison.high
            assert comparison.pairs > 0
    for variant in report.variants:
        if variant.time_s and variant.time_s.low is not None:
            assert variant.time_s.low <= variant.time_s.median <= variant.time_s.high
    assert len(report.findings) == len({msgspec.json.encode(entry) for entry in report.findings})
