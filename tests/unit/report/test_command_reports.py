"""The reports of whole commands: what `--calibrate` and `--observer-effect` make of a run."""

import pytest
from recorded import report_of

from gpulab.core.events import TelemetrySwitched
from gpulab.core.statuses import ExitCode
from gpulab.features.observer_effect.report import exit_code_of, is_small, observer_effect_of
from gpulab.report.commands import ObserverEffect, calibration_report
from gpulab.report.report import RunReport
from gpulab.version import __version__

REPORT = RunReport(scenario="mine", run_file="run.jsonl")
SWITCHES = [TelemetrySwitched(on=bool(second % 2), t=float(second)) for second in range(9)]


def effect(low, high, ratio=1.0):
    return ObserverEffect(scenario="mine", ratio=ratio, low=low, high=high, pairs=9)


def test_a_run_without_a_pair_has_no_effect_but_its_name_and_file():
    assert observer_effect_of(REPORT, SWITCHES) == ObserverEffect(
        scenario="mine", run_file="run.jsonl"
    )


@pytest.mark.parametrize(
    ("low", "high", "small"),
    [
        (0.991, 1.009, True),
        (1.0, 1.0, True),
        (0.98, 1.0, False),
        (1.0, 1.02, False),
        (None, None, False),
    ],
)
def test_an_effect_is_small_where_the_whole_interval_is(low, high, small):
    assert is_small(effect(low, high)) is small


@pytest.mark.parametrize(
    ("ratio", "code", "expected"),
    [
        (1.5, ExitCode.INVALID, ExitCode.MEASURED),
        (None, ExitCode.MEASURED, ExitCode.INCONCLUSIVE),
        (None, ExitCode.FAILED, ExitCode.FAILED),
    ],
)
def test_the_exit_code_is_that_of_the_run_where_there_is_no_interval(ratio, code, expected):
    report = RunReport(scenario="mine", exit_code=code)
    assert exit_code_of(effect(ratio, ratio, ratio), report) == expected


def test_a_calibration_reports_what_its_run_measured(tmp_path):
    report = report_of("calibration", tmp_path)
    calibration = calibration_report(report)
    assert calibration.ceilings == report.ceilings.ceilings
    assert calibration.ceilings
    assert (calibration.at, calibration.device) == (report.ceilings.at, report.device)
    assert (calibration.outcome, calibration.exit_code) == ("measured", 0)
    assert calibration.environment == report.environment
    assert calibration.run_file == report.run_file


def test_a_calibration_that_never_began_names_its_gpulab():
    calibration = calibration_report(RunReport(scenario="calibration", exit_code=ExitCode.FAILED))
    assert (calibration.ceilings, calibration.at, calibration.device) == ([], None, None)
    assert calibration.environment == {"gpulab": __version__}
    assert calibration.exit_code == ExitCode.FAILED
