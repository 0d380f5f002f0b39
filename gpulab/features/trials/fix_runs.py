"""Runs of fixes of a step: the step is looked at first, in a process of its own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from msgspec.structs import replace as replace_fields

from gpulab.core.jobs import Measure, RunRequest, StepRequest, TriedFix
from gpulab.features.trials.declarations import FIXES, Fix, gaining
from gpulab.features.trials.facts import StepFacts
from gpulab.features.trials.fix_result import ALL_TOGETHER
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.scenario import shown
from gpulab.session.derived import planned_request, request_of_text, step_request
from gpulab.session.launch import Launch, plan
from gpulab.session.look import Look, LookError
from gpulab.session.step_text import step_text, variant_text
from gpulab.session.worker_process import usual_environment

_TRANSFORMATIONS = Path(__file__).with_name("transformations.py")
_TRIES = "Fixes tried on {what}: each variant is the step as it is with one change."


class Fixes:
    """The fixes that fit one function of a program, and why others do not. UsageError,
    StoppedError.

    `names`: those to try; empty: all of them.
    """

    def __init__(
        self, launch: Launch, settings: Options, look: Look, names: Sequence[str] = ()
    ) -> None:
        if not launch.functions:
            raise UsageError(
                "--try takes a function (--run FILE:function --try): write a fix of a scenario's "
                "variant as another variant"
            )
        if len(launch.functions) > 1:
            raise UsageError("--try takes one function: --run FILE:function --try")
        self._launch = launch
        self._settings = settings
        self._step = step_request(planned_request("--try", plan(launch, settings)))
        worker = "gpulab.features.trials.worker"
        environment = usual_environment(self._step.threads)
        try:
            self._facts: StepFacts = look.ask(worker, self._step, environment, StepFacts)
        except LookError as error:
            raise UsageError(f"--try {launch.label}: {error}") from None
        self._asked = fixes_named(names, self._facts)
        self.why_not = {fix.name: fix.applies(self._facts) for fix in self._asked}
        self.applying = [fix for fix in self._asked if not self.why_not[fix.name]]

    def request(self) -> RunRequest:
        """Each of them by itself."""
        tried = tuple(self._tried(fix) for fix in self._asked)
        return self._request(self.text(), tried, self._settings)

    def together(self, gained: Sequence[Fix]) -> RunRequest:
        """Those that gained, all in one."""
        names = ", ".join(fix.name for fix in gained)
        text = scenario_text(self._step, self._facts, (), gained)
        tried = (TriedFix(name=ALL_TOGETHER, sentence=names),)
        return self._request(text, tried, replace(self._settings, profile="off"))

    def gained_together(self, report: RunReport) -> RunRequest | None:
        """Those that gained in the run of each by itself, where they are several."""
        gained = gaining(report.fixes)
        return self.together(gained) if len(gained) > 1 else None

    def text(self, gained: Sequence[Fix] = ()) -> str:
        """The scenario that tries them."""
        return scenario_text(self._step, self._facts, self.applying, gained)

    def _tried(self, fix: Fix) -> TriedFix:
        return TriedFix(
            name=fix.name,
            sentence=fix.sentence,
            why_not=self.why_not[fix.name],
        )

    def _request(self, text: str, tried: tuple[TriedFix, ...], settings: Options) -> RunRequest:
        planned = request_of_text("--try", f"{self._launch.label}-fixes", text, settings)
        assert isinstance(planned.job, Measure)
        subject = replace_fields(planned.job.subject, fixes=tried)
        return replace_fields(planned, job=replace_fields(planned.job, subject=subject))


def fixes_named(names: Sequence[str], facts: StepFacts) -> list[Fix]:
    """Those fixes in the order in which they are applied, all without names. UsageError where there
    is none of a name.
    """
    unknown = [name for name in names if name not in {fix.name for fix in FIXES}]
    if unknown:
        applying = [fix.name for fix in FIXES if not fix.applies(facts)]
        those = ", ".join(applying) or "none"
        raise UsageError(f"--try {shown(unknown[0])}: no such fix; these apply: {those}")
    return [fix for fix in FIXES if not names or fix.name in names]


def scenario_text(
    request: StepRequest, facts: StepFacts, fixes: Sequence[Fix], together: Sequence[Fix] = ()
) -> str:
    """Each of `fixes` by itself, and those `together` in one variant."""
    used = list(dict.fromkeys([*fixes, *together]))
    variants = [variant_text(fix.name, f"{fix.sentence}.", _changes([fix])) for fix in fixes]
    if together:
        variants.append(variant_text(ALL_TOGETHER, "All that gained.", _changes(together)))
    given = {"inputs": facts.inputs, "state": facts.state}
    return step_text(
        request,
        title=_TRIES,
        flag="--try",
        expressions=[f"{name}={tuple(each)!r}" for name, each in given.items() if each],
        sources=[_source(fix.name) for fix in used],
        variants=variants,
    )


def _changes(fixes: Sequence[Fix]) -> list[str]:
    return [f"with_{fix.name}" for fix in fixes]


def _source(name: str) -> str:
    """The function of a fix, as it stands in the file of all of them, under a name that no variant
    has.
    """
    text = _functions()[name]
    return text.replace(f"def {name}(built: BuiltStep) -> None:", f"def with_{name}(built):", 1)


@cache
def _functions() -> dict[str, str]:
    text = _TRANSFORMATIONS.read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    lines = text.splitlines(keepends=True)
    return {node.name: "".join(lines[node.lineno - 1 : node.end_lineno]) for node in nodes}
