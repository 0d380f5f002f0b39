"""`--doctor`: the machine looked over, as a table or as JSON."""

from __future__ import annotations

from gpulab.doctor.doctor import examine
from gpulab.headless.options import Options
from gpulab.headless.output import write_json
from gpulab.headless.terminal import open_terminal
from gpulab.protocol.machine import CheckStatus
from gpulab.report.exit_codes import ExitCode
from gpulab.views.doctor import doctor


def show_doctor(options: Options) -> int:
    """Print the checks; 0, or 3 where something is broken or torch is missing, so that nothing can be measured."""
    checks = examine()
    if options.json:
        write_json(checks, options.json)
    if not options.json_on_stdout:
        terminal = open_terminal(ascii_only=options.ascii)
        terminal.show(doctor(checks, terminal.glyphs))
    useless = any(
        check.status == CheckStatus.BROKEN or (check.name == "torch" and check.status != CheckStatus.OK)
        for check in checks
    )
    return ExitCode.FAILED if useless else ExitCode.MEASURED
