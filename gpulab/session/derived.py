"""What runs have in common that the lab derives from a step: each looks at it first, in a process
of its own, which takes seconds; and the text of a scenario whose variants are that step, as it is
and with changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import RunRequest, StepRequest, TimeFunctions
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.session.launch import Launch, plan
from gpulab.session.temporary import temporary_folder

UNTOUCHED = "as_it_is"


def names_in(given: str | None) -> list[str]:
    """Those of a list such as "a, b"."""
    return list(filter(None, (name.strip() for name in (given or "").split(","))))


def planned_request(flag: str, launch: Launch, settings: Options) -> RunRequest:
    """UsageError where the run cannot be made, or is one of several functions."""
    if len(launch.functions) > 1:
        raise UsageError(f"{flag} takes one function: --run FILE:function {flag}")
    planned = plan(launch, settings)
    if isinstance(planned, RunReport):
        assert planned.reason is not None
        raise UsageError(f"{flag} {planned.scenario}: {sentence(planned.reason)}")
    return planned


def request_of_text(flag: str, label: str, text: str, settings: Options) -> RunRequest:
    """The run of a scenario that is written for it: its text is read once, as any other's."""
    with temporary_folder() as folder:
        name = "".join(letter if letter.isalnum() else "_" for letter in label)
        file = folder / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        launch = Launch(read_file(file))
        return planned_request(flag, launch, replace(settings, arguments=None))


def step_request(planned: RunRequest) -> StepRequest:
    """The step of the one function that is to be run."""
    job = planned.job
    assert isinstance(job, TimeFunctions)
    subject, arguments = job.subject, job.subject.arguments
    return StepRequest(
        file=subject.path,
        function=subject.variants[0].name,
        arguments=f"{arguments.path}:{arguments.function}" if arguments else None,
        device=job.device,
        threads=job.threads,
    )


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
