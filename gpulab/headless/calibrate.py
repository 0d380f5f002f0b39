"""`--calibrate`: what the device can do at best, measured now, as a table, a roofline, and JSON."""

from __future__ import annotations

from gpulab.headless.drive import drive
from gpulab.headless.output import check_run_file, open_terminal
from gpulab.headless.replay import show_run
from gpulab.options import Options
from gpulab.report.build import CALIBRATION
from gpulab.session.drive import Interrupts
from gpulab.session.launch import start
from gpulab.session.requests import calibration_request
from gpulab.session.run_files import default_path


def calibrate(options: Options) -> int:
    """Measure every ceiling and print them; they are kept for later runs on the device. Returns the
    exit code.
    """
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    request = calibration_request(options)
    path = options.output or default_path(CALIBRATION)
    check_run_file(path)
    with Interrupts() as interrupts:
        run = drive(start(request, path), interrupts, terminal)
    return show_run(run, options, terminal)
