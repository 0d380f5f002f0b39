"""`--calibrate`: what the device can do at best, measured now, as a table, a roofline, and JSON."""

from __future__ import annotations

from functools import partial

from gpulab.headless.drive import drive
from gpulab.headless.export import export
from gpulab.headless.output import check_run_file, open_terminal, write_json
from gpulab.headless.printed import show_calibration, show_failures
from gpulab.options import Options
from gpulab.report.build import CALIBRATION
from gpulab.report.commands import calibration_report
from gpulab.session.drive import Interrupts
from gpulab.session.launch import start
from gpulab.session.requests import calibration_request
from gpulab.session.run_files import default_path
from gpulab.show.display import as_file


def calibrate(options: Options) -> int:
    """Measure every ceiling and print them; they are kept for later runs on the device. Returns the
    exit code.
    """
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    request = calibration_request(options)
    path = options.output or default_path(CALIBRATION)
    check_run_file(path)
    with Interrupts() as interrupts:
        report = drive(start(request, path), interrupts, terminal)
    show_failures(report, terminal)
    show_calibration(report, terminal, links_only=bool(options.ranks))
    if options.json:
        write_json(calibration_report(report), options.json)
    if options.plot:
        export([(partial(as_file, [report]), options.plot)], terminal)
    assert report.exit_code is not None  # the run has ended
    return report.exit_code
