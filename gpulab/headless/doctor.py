"""`--doctor`: the machine looked over, as a table or as JSON."""

from __future__ import annotations

from gpulab.doctor.doctor import examine
from gpulab.headless.output import write_json
from gpulab.headless.terminal import open_terminal
from gpulab.protocol.machine import CheckStatus
from gpulab.report.exit_codes import ExitCode
from gpulab.views.doctor import doctor


def show_doctor(*, json: str | None, ascii_only: bool) -> int:
    """Print the checks; 0, or 3 where something is broken or torch is missing, so that nothing can be measured."""
    checks = examine()
    if json:
        write_json(checks, json)
    if json != "-":
        terminal = open_terminal(ascii_only=ascii_only)
        terminal.show(doctor(checks, terminal.glyphs))
    useless = any(
        check.status == CheckStatus.BROKEN or (check.name == "torch" and check.status != CheckStatus.OK)
        for check in checks
    )
    return ExitCode.FAILED if useless else ExitCode.MEASURED
