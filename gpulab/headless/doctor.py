"""`--doctor`: the machine looked over, as a table or as JSON."""

from __future__ import annotations

from gpulab.headless.output import write_json
from gpulab.headless.terminal import terminal
from gpulab.model.result import FAILED, MEASURED
from gpulab.run.doctor import examine
from gpulab.views.doctor import doctor


def show_doctor(*, json: str | None, ascii_only: bool) -> int:
    """Print the findings; 0, or 3 where something is broken or torch is missing, so that nothing can be measured."""
    findings = examine()
    if json:
        write_json(findings, json)
    if json != "-":
        shown = terminal(ascii_only=ascii_only)
        shown.out.print(doctor(findings, shown.glyphs), soft_wrap=not shown.out.is_terminal)
    useless = any(one.status == "broken" or (one.name == "torch" and one.status != "ok") for one in findings)
    return FAILED if useless else MEASURED
