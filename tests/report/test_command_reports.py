"""The report of a whole command: what `--calibrate` makes of a run."""

from recorded import report_of
from reports import run_report

from gpulab.commit import version
from gpulab.core.statuses import ExitCode
from gpulab.report.commands import calibration_report


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
    calibration = calibration_report(run_report(scenario="calibration", exit_code=ExitCode.FAILED))
    assert (calibration.ceilings, calibration.at, calibration.device) == ((), None, None)
    assert calibration.environment == {"gpulab": version()}
    assert calibration.exit_code == ExitCode.FAILED
