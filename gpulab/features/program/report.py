"""A program that was followed, as a part of the report: how it ended, and its steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import median

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import FindingMade, ProgramEnded, StageStarted
from gpulab.core.findings import Finding
from gpulab.core.jobs import Follow
from gpulab.features.goodput.events import Profiled
from gpulab.features.program import result
from gpulab.features.program.events import (
    ChildExited,
    ProcessFollowed,
    StepMark,
    StepsFollowed,
    WindowKind,
)
from gpulab.features.program.findings import (
    no_python,
    no_recording,
    no_step,
    old_python,
    processes_go_on,
    recorded_elsewhere,
    recordings_unreadable,
    torch_of_another_thread,
)
from gpulab.features.program.result import FollowedReport, ProgramReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport, fields_of
from gpulab.report.state import Keep, RunState, VariantState
from gpulab.stats.statistics import correlated_interval

_MOST_WINDOWS = 20_000
_CHANGED = 1.25
"""How far the median of windows and their mean are apart where steps changed on the way: windows
are as long, and so of longer steps there are more.
"""
_OLDEST = (3, 9)
"""Python that the agent runs in."""
_WHY_NO_PROFILE = {
    found.code for found in (recorded_elsewhere, recordings_unreadable, torch_of_another_thread)
}
_RANKS = {StepMark.MODULE: 0, StepMark.ANNOTATION: 1, StepMark.OPTIMIZER: 1, StepMark.CALL: 2}


@dataclass
class _Steps:
    """The steps of one process: its windows since its steps have the mark that they have."""

    rank: int = 0
    mark: StepMark = StepMark.MODULE
    windows: list[StepsFollowed] = field(default_factory=list)
    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, event: StepsFollowed) -> None:
        if event.mark != self.mark:
            self.windows, self.steps = [], 0
            self.kinds.clear()
            self.mark = event.mark
        self.kinds.update(event.kinds)
        self.rank = event.rank
        self.steps += event.steps
        if len(self.windows) < _MOST_WINDOWS:
            self.windows.append(event)

    def of(self, kind: WindowKind) -> list[StepsFollowed]:
        return [window for window in self.windows if window.kind == kind]


@dataclass
class ProgramState:
    """The history of a program's processes, by their numbers."""

    processes: dict[int, _Steps] = field(default_factory=lambda: defaultdict(_Steps))

    @property
    def main(self) -> _Steps | None:
        """The process whose steps count."""
        return min(
            self.processes.values(),
            key=lambda steps: (-_RANKS[steps.mark], steps.rank, -steps.steps),
            default=None,
        )


def _add(state: RunState, event: StepsFollowed) -> None:
    state.part(ProgramState).processes[event.pid].add(event)


def _step_s(window: StepsFollowed) -> float:
    return window.seconds / window.steps


def _time(steps: _Steps) -> Estimate | None:
    """Return the seconds of a step: the median over the plain windows, or of a program whose steps
    changed on the way their mean, without an interval.
    """
    windows = _plain(steps)
    if not windows:
        return None
    times_s = [_step_s(window) for window in windows]
    interval = correlated_interval(times_s)
    usual = interval.estimate if interval else Estimate(value=median(times_s))
    mean_s = sum(window.seconds for window in windows) / sum(window.steps for window in windows)
    if max(usual.value / mean_s, mean_s / usual.value) > _CHANGED:
        return Estimate(value=mean_s)
    return usual


def _plain(steps: _Steps) -> list[StepsFollowed]:
    """Return the windows without a profiler; of steps of several kinds those which have only the
    most frequent kind, if there are any.
    """
    windows = [window for window in steps.of(WindowKind.PLAIN) if not window.attached]
    windows = windows or steps.of(WindowKind.WARM_UP)[2:]
    kind = max(steps.kinds, key=steps.kinds.__getitem__, default="")
    return [window for window in windows if window.kinds.keys() <= {kind}] or windows


def _following_s(steps: _Steps, plain: Estimate | None) -> float:
    """Return what following added to the steps: between them, and in those that were recorded or
    came with a profiler attached.
    """
    added_s = sum(window.between_s for window in steps.windows)
    if plain is None:
        return added_s
    slowed = [
        window for window in steps.windows if window.attached or window.kind == WindowKind.PROFILED
    ]
    return added_s + sum(max(0.0, each.seconds - each.steps * plain.value) for each in slowed)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    state = draft.state
    job = state.job
    if not isinstance(job, Follow):
        return report
    history = state.part(ProgramState)
    variant = next(iter(state.variants.values()), None)
    ended = variant.last(ProgramEnded) if variant else None
    program = ProgramReport(
        **fields_of(
            ended, "code", "signal", "wall_s", "user_s", "system_s", "resident_bytes", "left"
        ),
        argv=list(job.subject.argv),
        folder=job.subject.folder,
        processes=[*_processes(state, history)],
    )
    steps = history.main
    if steps is not None:
        program = _add_steps(state, program, steps)
    return report.with_parts(program=program)


def _add_steps(state: RunState, program: ProgramReport, steps: _Steps) -> ProgramReport:
    recorded = steps.of(WindowKind.PROFILED)
    loop = [window for window in steps.windows if window.kind != WindowKind.FIRST]
    peaks = [window.peak_bytes for window in steps.windows if window.peak_bytes]
    return replace(
        program,
        mark=steps.mark,
        steps=steps.steps,
        first_step_s=_first_step_s(state, steps),
        recorded_s=sum(window.seconds for window in recorded),
        following_s=_following_s(steps, _time(steps)),
        loop_s=sum(window.seconds + window.between_s for window in loop),
        peak_bytes=max(peaks, default=None),
        kinds=dict(steps.kinds.most_common()),
        mixed=len({kind for window in _plain(steps) for kind in window.kinds}) > 1,
    )


def _first_step_s(state: RunState, steps: _Steps) -> float | None:
    """From the start of the program to the end of its first step."""
    first = steps.of(WindowKind.FIRST)
    started = state.all(StageStarted)
    return max(0.0, first[0].t - started[0].t) if first and started else None


def _processes(state: RunState, history: ProgramState) -> Iterator[FollowedReport]:
    """Ranks in their order; of the others those that imported torch or had steps."""
    followed = {event.pid: event for event in state.all(ProcessFollowed)}
    for event in sorted(followed.values(), key=lambda event: (event.rank, event.t)):
        steps = history.processes.get(event.pid)
        if steps is None and event.torch is None:
            continue
        time = _time(steps) if steps else None
        yield FollowedReport(
            pid=event.pid,
            rank=event.rank if event.ranked else None,
            python=event.python,
            torch=event.torch or None,
            mark=steps.mark if steps else None,
            steps=steps.steps if steps else 0,
            step_s=time.value if time else None,
        )


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    """The time of its step, by the windows of the process that counts."""
    if not isinstance(draft.state.job, Follow):
        return report
    steps = draft.state.part(ProgramState).main
    time = _time(steps) if steps else None
    if time is None or steps is None:
        return report
    return replace(report, time_s=time)


def why_no_steps(state: RunState, program: ProgramReport) -> Finding | None:
    """Why no step was timed, or none recorded; None where all is there."""
    followed = state.all(ProcessFollowed)
    if not followed:
        return no_python()
    if not program.steps and all(event.torch is None for event in followed):
        return None
    if not program.steps:
        old = [event.python for event in followed if _version(event.python) < _OLDEST]
        return old_python(version=old[0]) if len(old) == len(followed) else no_step()
    said = {event.finding.code for event in state.all(FindingMade)}
    profiled = any(variant.last(Profiled) for variant in state.variants.values())
    job = state.job
    if profiled or said & _WHY_NO_PROFILE or not isinstance(job, Follow) or job.profile is None:
        return None
    return no_recording()


def _version(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split(".") if part.isdigit())


def _explained(draft: Draft, report: RunReport) -> RunReport:
    report = _add_to_run(draft, report)
    program = report.program
    if program is None or draft.under_way:
        return report
    explanations = list(report.explanations)
    if reason := why_no_steps(draft.state, program):
        explanations.append(reason)
    if program.left:
        verb = "runs" if program.left == 1 else "run"
        explanations.append(processes_go_on(count=program.left, verb=verb))
    return replace(report, explanations=explanations)


FEATURE = Feature(
    "program",
    run_part=result.RunPart,
    keeps={
        ProcessFollowed: Keep(by=attrgetter("pid")),
        ChildExited: Keep(by=attrgetter("pid")),
    },
    folds={StepsFollowed: _add},
    add_to_variant=_add_to_variant,
    add_to_run=_explained,
    views=(
        View("program.view:program_view", Section.PROGRAM),
        View("program.panel:PROGRAM", Section.PANELS),
    ),
)
