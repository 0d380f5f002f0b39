"""Runs that the lab derives from a step: fixes of it are tried, or its parts are delayed.

Each looks at the step first, in a process of its own, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_fields

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import Measure, RunRequest, StepPart, TimeFunctions, TriedFix
from gpulab.core.statuses import CeilingChoice
from gpulab.features import needed, present, taken_out
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.scenario import shown
from gpulab.session.launch import Launch, plan
from gpulab.session.look import Look, LookError
from gpulab.session.settings import Settings, UsageError
from gpulab.session.temporary import temporary_folder
from gpulab.session.worker_process import usual_environment, worker_environment

if TYPE_CHECKING:
    from gpulab.features.fixes.declarations import Fix
    from gpulab.features.fixes.facts import StepFacts, StepRequest
    from gpulab.features.what_if.parts import PartsRequest, PartsSeen


class Fixes:
    """The fixes that fit one function of a program, and why others do not. UsageError,
    StoppedError.

    `names`: those to try; empty: all of them.
    """

    def __init__(
        self, launch: Launch, settings: Settings, look: Look, names: Sequence[str] = ()
    ) -> None:
        _require("--try", "fixes")
        if not launch.functions:
            raise UsageError(
                "--try takes a function (--run FILE:function --try): write a fix of a scenario's "
                "variant as another variant"
            )
        if len(launch.functions) > 1:
            raise UsageError("--try takes one function: --run FILE:function --try")
        self._launch = launch
        self._settings = settings
        self._step = _step_request(_planned("--try", plan(launch, settings)))
        worker = "gpulab.features.fixes.worker"
        environment = usual_environment(self._step.threads)
        facts = needed("fixes.facts").StepFacts
        try:
            self._facts: StepFacts = look.ask(worker, self._step, environment, facts)
        except LookError as error:
            raise UsageError(f"--try {launch.label}: {error}") from None
        self._asked = fixes_named(names, self._facts)
        self.why_not = {fix.name: fix.applies(self._facts) for fix in self._asked}
        self.applying = [fix for fix in self._asked if not self.why_not[fix.name]]

    def request(self) -> RunRequest:
        """Each of them by itself."""
        tried = tuple(self._tried(fix) for fix in self._asked)
        return self._request(self.text(), tried, self._settings)

    def together(self, gaining: Sequence[Fix]) -> RunRequest:
        """Those that gained, all in one."""
        names = ", ".join(fix.name for fix in gaining)
        fixes = needed("fixes.text")
        text = fixes.scenario_text(self._step, self._facts, (), gaining)
        tried = (TriedFix(name=fixes.ALL_TOGETHER, sentence=names),)
        return self._request(text, tried, replace(self._settings, profile="off"))

    def text(self, gaining: Sequence[Fix] = ()) -> str:
        """The scenario that tries them."""
        fixes = needed("fixes.text")
        text: str = fixes.scenario_text(self._step, self._facts, self.applying, gaining)
        return text

    def _tried(self, fix: Fix) -> TriedFix:
        return TriedFix(
            name=fix.name,
            sentence=fix.sentence,
            why_not=self.why_not[fix.name],
            answers=tuple(fix.answers),
            lines=tuple(fix.lines(self._facts)),
            edit=fix.edit,
        )

    def _request(self, text: str, tried: tuple[TriedFix, ...], settings: Settings) -> RunRequest:
        planned = _of_text("--try", f"{self._launch.label}-fixes", text, settings)
        assert isinstance(planned.job, Measure)
        subject = replace_fields(planned.job.subject, fixes=tried)
        return replace_fields(planned, job=replace_fields(planned.job, subject=subject))


def fixes_named(names: Sequence[str], facts: StepFacts) -> list[Fix]:
    """Those fixes in the order in which they are applied, all without names. UsageError where there
    is none of a name.
    """
    every: Sequence[Fix] = needed("fixes.declarations").FIXES
    unknown = [name for name in names if name not in {fix.name for fix in every}]
    if unknown:
        applying = [fix.name for fix in every if not fix.applies(facts)]
        those = ", ".join(applying) or "none"
        raise UsageError(f"--try {shown(unknown[0])}: no such fix; these apply: {those}")
    return [fix for fix in every if not names or fix.name in names]


def names_in(given: str | None) -> list[str]:
    """Those of a list such as "a, b"."""
    return list(filter(None, (name.strip() for name in (given or "").split(","))))


_WHAT_IF = "What if a part of {what} were faster: each variant has one delayed."


class Parts:
    """The parts of one step of a scenario or function, and which of them can be delayed.
    UsageError, StoppedError.

    `given`: names of a variant and of operations.
    """

    def __init__(self, launch: Launch, settings: Settings, look: Look, given: str = "") -> None:
        _require("--what-if", "what_if")
        if launch.functions:
            _require("--what-if", "fixes")
        if len(launch.functions) > 1:
            raise UsageError("--what-if takes one function: --run FILE:function --what-if")
        request = _planned("--what-if", plan(launch, settings))
        if launch.functions:
            step = _step_request(request)
            facts = needed("fixes.facts").StepFacts()
            scenario_text = needed("fixes.text").scenario_text
            text = scenario_text(step, facts, (), title=_WHAT_IF, flag="--what-if")
            request = _of_text("--what-if", launch.label, text, settings)
        job = request.job
        assert isinstance(job, Measure)
        self._planned = request
        self._variant, operations = _chosen(job, given)
        self._title = _WHAT_IF.format(what=self._variant)
        if launch.functions:  # whose text has it
            self._title = job.subject.title
        what_if = needed("what_if.parts")
        asked = what_if.PartsRequest(job=job, variant=self._variant, operations=operations)
        try:
            seen = parts_of(asked, look)
        except LookError as error:
            raise UsageError(f"--what-if {job.subject.scenario}: {error}") from None
        self._on_gpu = job.device != "cpu"
        self.step_s = seen.step_s
        self.all: list[StepPart] = what_if.judged(seen, operations, on_gpu=self._on_gpu)
        self.able = [part for part in self.all if not part.why_not]

    def request(self, only: StepPart | None = None) -> RunRequest:
        """The run of the step with each part delayed that can be, or with this one alone."""
        job = self._planned.job
        assert isinstance(job, Measure)
        infos, delay_s = needed("what_if.parts").variants_of(
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
    """What a step consists of. StoppedError, LookError."""
    worker = "gpulab.features.what_if.look"
    with temporary_folder() as folder:
        environment = worker_environment(replace_fields(asked.job, folder=str(folder)))
        seen: PartsSeen = look.ask(worker, asked, environment, needed("what_if.parts").PartsSeen)
        return seen


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


def _require(flag: str, feature: str) -> None:
    """UsageError where it was taken out."""
    if present(feature) is None:
        raise UsageError(f"{flag}: {taken_out(feature)}")


def _planned(flag: str, planned: RunRequest | RunReport) -> RunRequest:
    if isinstance(planned, RunReport):
        assert planned.reason is not None
        raise UsageError(f"{flag} {planned.scenario}: {sentence(planned.reason)}")
    return planned


def _of_text(flag: str, label: str, text: str, settings: Settings) -> RunRequest:
    """The run of a scenario that is written for it: its text is read once, as any other's."""
    with temporary_folder() as folder:
        name = "".join(letter if letter.isalnum() else "_" for letter in label)
        file = folder / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        return _planned(flag, plan(Launch(read_file(file)), replace(settings, arguments=None)))


def _step_request(planned: RunRequest) -> StepRequest:
    job = planned.job
    assert isinstance(job, TimeFunctions)
    subject, arguments = job.subject, job.subject.arguments
    request: StepRequest = needed("fixes.facts").StepRequest(
        file=subject.path,
        function=subject.variants[0].name,
        arguments=f"{arguments.path}:{arguments.function}" if arguments else None,
        device=job.device,
        threads=job.threads,
    )
    return request
