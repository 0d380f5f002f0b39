"""`--calibrate`: what the device can do at best, measured now, as a table, a roofline, and JSON."""

from __future__ import annotations

from pathlib import Path

import gpulab
from gpulab.headless.output import check_json, write_json
from gpulab.headless.plot import check_plot, plot
from gpulab.headless.progress import progress_of
from gpulab.headless.run import Options
from gpulab.headless.runner import measure, run_file
from gpulab.headless.show import draw
from gpulab.headless.terminal import terminal
from gpulab.model.conclude import run_result
from gpulab.model.result import Calibration
from gpulab.run.record import default_path
from gpulab.run.request import CALIBRATION, calibration
from gpulab.views.ceilings import ceilings
from gpulab.views.results import failures


def calibrate(options: Options) -> int:
    """Measure every ceiling and print them; they are kept for later runs on the device. Returns the exit code."""
    shown = terminal(ascii_only=options.ascii)
    request = calibration(options)
    path = options.output or default_path(CALIBRATION)
    if options.json and options.json != "-":
        check_json(Path(options.json), [path])
    if options.plot:
        check_plot(options.plot)
    file = run_file(path)
    with progress_of(shown) as show:
        state = measure(request, file, show)
    found = run_result(state, str(path))
    shown.err.print(failures(state, shown.glyphs), end="", soft_wrap=True)
    console = shown.err if options.json == "-" else shown.out
    console.print(ceilings(found, shown.glyphs))
    draw(found, shown, console)
    console.print(f"run file: {path}", soft_wrap=True)
    if options.plot:
        plot(found, options.plot)
        shown.err.print(f"picture: {options.plot}", soft_wrap=True)
    if options.json:
        write_json(
            Calibration(
                outcome=found.outcome,
                exit_code=found.exit_code,
                reason=found.reason,
                environment=state.environment or {"gpulab": gpulab.__version__},
                device=found.device,
                at=found.ceilings.at if found.ceilings else None,
                ceilings=found.ceilings.ceilings if found.ceilings else [],
                warnings=found.warnings,
                run_file=str(path),
            ),
            options.json,
        )
    return found.exit_code
