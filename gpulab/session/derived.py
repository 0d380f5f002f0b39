"""What runs have in common that the lab derives from a step: each looks at it first, in a process
of its own, which takes seconds.
"""

from __future__ import annotations

from dataclasses import replace

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import RunRequest, StepRequest, TimeFunctions
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.session.launch import Launch, plan
from gpulab.session.temporary import temporary_folder


def names_in(given: str | None) -> list[str]:
    """Those of a list such as "a, b"."""
    return list(filter(None, (name.strip() for name in (given or "").split(","))))


def planned_request(flag: str, planned: RunRequest | RunReport) -> RunRequest:
    """UsageError where the run cannot be made."""
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
        return planned_request(
            flag, plan(Launch(read_file(file)), replace(settings, arguments=None))
        )


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
