"""Runs of a step with its parts delayed: the step is looked at first, in a process of its own."""

from __future__ import annotations

from msgspec.structs import replace as replace_fields

from gpulab.core.jobs import Measure, RunRequest, StepPart
from gpulab.core.statuses import CeilingChoice
from gpulab.features.trials.parts import PartsRequest, PartsSeen, judged, variants_of
from gpulab.options import Options, UsageError
from gpulab.scenario import shown
from gpulab.session.derived import names_in, planned_request, request_of_text, step_request
from gpulab.session.launch import Launch, plan
from gpulab.session.look import Look, LookError
from gpulab.session.step_text import step_text
from gpulab.session.temporary import temporary_folder
from gpulab.session.worker_process import worker_environment

_WHAT_IF = "What if a part of {what} were faster: each variant has one delayed."


class Parts:
    """The parts of one step of a scenario or function, and which of them can be delayed.
    UsageError, StoppedError.

    `given`: names of a variant and of operations.
    """

    def __init__(self, launch: Launch, settings: Options, look: Look, given: str = "") -> None:
        if len(launch.functions) > 1:
            raise UsageError("--what-if takes one function: --run FILE:function --what-if")
        request = planned_request("--what-if", plan(launch, settings))
        if launch.functions:
            text = step_text(step_request(request), title=_WHAT_IF, flag="--what-if")
            request = request_of_text("--what-if", launch.label, text, settings)
        job = request.job
        assert isinstance(job, Measure)
        self._planned = request
        self._variant, operations = _chosen(job, given)
        self._title = _WHAT_IF.format(what=self._variant)
        if launch.functions:  # whose text has it
            self._title = job.subject.title
        asked = PartsRequest(job=job, variant=self._variant, operations=operations)
        try:
            seen = parts_of(asked, look)
        except LookError as error:
            raise UsageError(f"--what-if {job.subject.scenario}: {error}") from None
        self._on_gpu = job.device != "cpu"
        self.step_s = seen.step_s
        self.all: list[StepPart] = judged(seen, operations, on_gpu=self._on_gpu)
        self.able = [part for part in self.all if not part.why_not]

    def request(self, only: StepPart | None = None) -> RunRequest:
        """The run of the step with each part delayed that can be, or with this one alone."""
        job = self._planned.job
        assert isinstance(job, Measure)
        infos, delay_s = variants_of(
            self._variant, self.all, self.step_s, on_gpu=self._on_gpu, only=only
        )
        named = next(info for info in job.subject.variants if info.name == self._variant)
        subject = replace_fields(
            job.subject,
            variants=tuple(replace_fields(info, unchecked=named.unchecked) for info in infos),
            title=self._title,
            parts=tuple(self.all if only is None else [only]),
            delay_s=delay_s,
        )
        job = replace_fields(
            job,
            subject=subject,
            ladder=False,
            fail_below=None,
            # a slope needs a narrow interval, also where it is clear what is slower
            brief=False,
            alone=False,
            ceilings=CeilingChoice.NONE,
        )
        return replace_fields(self._planned, job=job, profile=None)


def parts_of(asked: PartsRequest, look: Look) -> PartsSeen:
    """Return what a step consists of. StoppedError, LookError."""
    worker = "gpulab.features.trials.look"
    with temporary_folder() as folder:
        environment = worker_environment(replace_fields(asked.job, folder=str(folder)))
        return look.ask(worker, asked, environment, PartsSeen)


def _chosen(job: Measure, given: str) -> tuple[str, list[str]]:
    """The variant whose step it is, and the operations that are parts."""
    names = [info.name for info in job.subject.variants]
    variant, operations = names[0], []
    for name in names_in(given):
        if "::" in name:
            operations.append(name)
        elif name in names:
            variant = name
        else:
            raise UsageError(
                f"--what-if {shown(name)}: neither a variant ({', '.join(names)}) nor an "
                "operation, such as aten::mm"
            )
    return variant, operations
