"""The text of a scenario whose variants are a step of a program: as it is, and with changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpulab.core.jobs import StepRequest

UNTOUCHED = "as_it_is"


def step_text(
    request: StepRequest,
    *,
    title: str,
    flag: str,
    expressions: Sequence[str] = (),
    sources: Sequence[str] = (),
    variants: Sequence[str] = (),
) -> str:
    """The step as it is, then `variants`, which call the functions of `sources`. `expressions` are
    keywords of `FunctionStep`.
    """
    what = f"{Path(request.file).name}:{request.function}"
    imports = [
        f"import {module}\n\n"
        for module in ("os", "torch")
        if any(f"{module}." in source for source in sources)
    ]
    head = [
        f'"""{title.format(what=what)}\n\n',
        f"Written by gpulab {flag}. The program itself is imported, and never edited; its file\n",
        'is run anew for each build.\n"""\n\n',
        *imports,
        "from gpulab import Scenario\n",
        "from gpulab.function_step import FunctionStep\n\n",
        f'scenario = Scenario("{flag} {what}")\n',
        *_step(request, expressions),
    ]
    untouched = variant_text(UNTOUCHED, f"{what} as it is.", ())
    return "".join([*head, *(f"\n\n{source}" for source in (*sources, untouched, *variants))])


def _step(request: StepRequest, expressions: Sequence[str]) -> list[str]:
    lines = ["step = FunctionStep(\n", f"    {request.file!r},\n", f"    {request.function!r},\n"]
    if request.arguments:
        lines.append(f"    arguments={request.arguments!r},\n")
    return [*lines, *(f"    {line},\n" for line in expressions), ")\n"]


def variant_text(name: str, summary: str, changes: Sequence[str]) -> str:
    """A variant of the step with these functions called on its build."""
    given = "".join(f", {change}" for change in changes)
    summary = summary.replace("\\", "/").replace('"', "'")
    body = f'    """{summary}"""\n    return step.work(lab{given})\n'
    return f"@scenario.variant\ndef {name}(lab):\n{body}"
