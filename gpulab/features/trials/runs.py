"""Runs of fixes of a step, and of a step with its parts delayed: the step is looked at first, in a
process of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as replace_fields

from gpulab.core.jobs import Measure, RunRequest, StepPart, StepRequest, TriedFix
from gpulab.core.statuses import CeilingChoice
from gpulab.features.trials.fixes import FIXES, StepSeen, gaining
from gpulab.features.trials.parts import PartsRequest, PartsSeen, judged, variants_of
from gpulab.features.trials.result import ALL_TOGETHER
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.scenario import shown
from gpulab.session.derived import (
    names_in,
    planned_request,
    request_of_text,
    step_request,
    step_text,
    variant_text,
)
from gpulab.session.launch import Launch
from gpulab.session.look import Look, LookError
from gpulab.session.temporary import temporary_folder
from gpulab.session.worker_process import usual_environment, worker_environment

_TRANSFORMATIONS = Path(__file__).with_name("transformations.py")
_TRIES = "Fixes tried on {what}: each variant is the step as it is with one change."
_WHAT_IF = "What if a part of {what} were faster: each variant has one delayed."


class Fixes:
    """The fixes that fit one function of a program, and why others do not. UsageError,
    StoppedError.

    `names`: those to try; empty: all of them.
    """

    NOTHING = "no fix that can be applied from outside fits this step"

    def __init__(
        self, launch: Launch, settings: Options, look: Look, names: Sequence[str] = ()
    ) -> None:
        if not launch.functions:
            raise UsageError(
                "--try takes a function (--run FILE:function --try): write a fix of a scenario's "
                "variant as another variant"
            )
        self._launch = launch
        self._settings = settings
        self._step = step_request(planned_request("--try", launch, settings))
        environment = usual_environment(self._step.threads)
        try:
            self._seen = look.ask(
                "gpulab.features.trials.worker", self._step, environment, StepSeen
            )
        except LookError as error:
            raise UsageError(f"--try {launch.label}: {error}") from None
        self._asked = fixes_named(names, self._seen)
        self.why_not = {fix.name: fix.why_not for fix in self._asked}
        self.able = [fix for fix in self._asked if not fix.why_not]

    def request(self) -> RunRequest:
        """Each of them by itself."""
        return self._request(self.text(), self._asked, self._settings)

    def together(self, gained: Sequence[TriedFix]) -> RunRequest:
        """Those that gained, all in one."""
        names = ", ".join(fix.name for fix in gained)
        text = scenario_text(self._step, self._seen, (), gained)
        tried = [TriedFix(name=ALL_TOGETHER, sentence=names)]
        return self._request(text, tried, replace(self._settings, profile="off"))

    def gained_together(self, report: RunReport) -> RunRequest | None:
        """Those that gained in the run of each by itself, where they are several."""
        gained = gaining(report.fixes)
        return self.together(gained) if len(gained) > 1 else None

    def text(self, gained: Sequence[TriedFix] = ()) -> str:
        """The scenario that tries them."""
        return scenario_text(self._step, self._seen, self.able, gained)

    def _request(self, text: str, tried: Iterable[TriedFix], settings: Options) -> RunRequest:
        planned = request_of_text("--try", f"{self._launch.label}-fixes", text, settings)
        assert isinstance(planned.job, Measure)
        subject = replace_fields(planned.job.subject, fixes=tuple(tried))
        return replace_fields(planned, job=replace_fields(planned.job, subject=subject))


def fixes_named(names: Sequence[str], seen: StepSeen) -> list[TriedFix]:
    """Those fixes in the order in which they are applied, all without names. UsageError where there
    is none of a name.
    """
    known = [fix.name for fix in FIXES]
    unknown = [name for name in names if name not in known]
    if unknown:
        those = ", ".join(name for name in known if not seen.why_not[name]) or "none"
        raise UsageError(f"--try {shown(unknown[0])}: no such fix; these apply: {those}")
    return [
        replace_fields(fix, why_not=seen.why_not[fix.name])
        for fix in FIXES
        if not names or fix.name in names
    ]


def scenario_text(
    request: StepRequest,
    seen: StepSeen,
    fixes: Sequence[TriedFix],
    together: Sequence[TriedFix] = (),
) -> str:
    """Each of `fixes` by itself, and those `together` in one variant."""
    functions = _functions()
    variants = [variant_text(fix.name, f"{fix.sentence}.", [f"with_{fix.name}"]) for fix in fixes]
    if together:
        changes = [f"with_{fix.name}" for fix in together]
        variants.append(variant_text(ALL_TOGETHER, "All that gained.", changes))
    given = {"inputs": seen.inputs, "state": seen.state}
    return step_text(
        request,
        title=_TRIES,
        flag="--try",
        expressions=[f"{name}={tuple(each)!r}" for name, each in given.items() if each],
        sources=[functions[fix.name] for fix in dict.fromkeys([*fixes, *together])],
        variants=variants,
    )


def _functions() -> dict[str, str]:
    """The functions of fixes, as they stand in the file of all of them, under names that no variant
    has.
    """
    text = _TRANSFORMATIONS.read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            lines = text.splitlines(keepends=True)[node.lineno : node.end_lineno]
            found[node.name] = "".join([f"def with_{node.name}(built):\n", *lines])
    return found


class Parts:
    """The parts of one step of a scenario or function, and which of them can be delayed.
    UsageError, StoppedError.

    `given`: names of a variant and of operations.
    """

    NOTHING = (
        "no part of this step can be delayed: mark them with lab.phase(NAME), or name an "
        "operation, such as --what-if aten::mm"
    )

    def __init__(self, launch: Launch, settings: Options, look: Look, given: str = "") -> None:
        request = planned_request("--what-if", launch, settings)
        if launch.functions:
            text = step_text(step_request(request), title=_WHAT_IF, flag="--what-if")
            request = request_of_text("--what-if", launch.label, text, settings)
        assert isinstance(request.job, Measure)
        self._planned = request
        self._job = job = request.job
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
        self.why_not = {part.name: part.why_not for part in self.all}
        self.able = [part for part in self.all if not part.why_not]

    def request(self, only: StepPart | None = None) -> RunRequest:
        """The run of the step with each part delayed that can be, or with this one alone."""
        infos, delay_s = variants_of(
            self._variant, self.all, self.step_s, on_gpu=self._on_gpu, only=only
        )
        subject = self._job.subject
        named = next(info for info in subject.variants if info.name == self._variant)
        subject = replace_fields(
            subject,
            variants=tuple(replace_fields(info, unchecked=named.unchecked) for info in infos),
            title=self._title,
            parts=tuple(self.all if only is None else [only]),
            delay_s=delay_s,
        )
        job = replace_fields(
            self._job,
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
    with temporary_folder() as folder:
        environment = worker_environment(replace_fields(asked.job, folder=str(folder)))
        return look.ask("gpulab.features.trials.look", asked, environment, PartsSeen)


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
