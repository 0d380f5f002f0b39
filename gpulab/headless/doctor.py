"""`--doctor`: the machine looked over, as a table or as JSON."""

from __future__ import annotations

from gpulab.core.statuses import ExitCode
from gpulab.features.doctor.report import can_measure, examine
from gpulab.features.doctor.view import doctor
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options


def show_doctor(options: Options) -> int:
    """Print the checks; 0, or 3 where something is broken or torch is missing, so that nothing can
    be measured.
    """
    checks = examine()
    if options.json:
        write_json(checks, options.json)
    if not options.json_on_stdout:
        terminal = open_terminal(ascii_only=options.ascii)
        terminal.show(doctor(checks))
    return ExitCode.MEASURED if can_measure(checks) else ExitCode.FAILED
