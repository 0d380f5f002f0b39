"""Whether what is timed computes: in every epoch blocks like any other, of which new inputs interrupt the steps."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from time import perf_counter

import torch

from gpulab.protocol.events import Examined
from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import CheckKind, Stage
from gpulab.scenario import CONTROL
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build
from gpulab.worker.checking import outputs, state_updates
from gpulab.worker.checking.changes import Change, LateElement
from gpulab.worker.checking.fresh_values import FreshTimes, pairs_for, refuse, time_pairs
from gpulab.worker.checking.matching import Matching, Memory, identity, match
from gpulab.worker.checking.references import References, Result
from gpulab.worker.checking.samples import output_samples
from gpulab.worker.context import WorkerContext
from gpulab.worker.process.errors import WrongOutputError, checking
from gpulab.worker.process.failure import is_out_of_memory
from gpulab.worker.timing.candidate import Candidate

_SHARE = 0.12
"""Of the time since the measurement began, for checks of what has been checked before."""
_OTHER_STEPS = 4
"""Besides those of a block: the baseline's, and those on fresh values."""
_SHORT_BLOCK_S, _LONG = 0.02, 0.5
"""A block from which on it is long, and the part of the processes that check a single variant of such blocks."""
_PROCESSES_TO_CHECK_ALL = 4
_SLOW_STEP_S, _SLOW = 5e-3, 0.25
"""A step from which on it is slow, and the part of its checks that time it on new values."""
_MOST_STATEFUL_STEPS = 3
_LOOSER, _LOOSEST = 4.0, 0.5
"""Times by which each further step of a training loosens the tolerance, and to what."""
_PART = 1 << 20
_PAIRS_TO_CONFIRM = 7
Tensors = list[torch.Tensor]


@dataclass
class _Shown:
    """What the checks of a variant showed in this process."""

    blocks: int = 0
    late: int = 0
    error: float = 0.0
    allowed: float = 0.0
    state: int = 0
    fresh: FreshTimes = field(default_factory=FreshTimes)


class TimedChecks:
    """Of one measuring process. `check` is called at a random moment of each epoch, `finish` after the last."""

    def __init__(self, context: WorkerContext) -> None:
        self._begins = partial(context.reporter.position.move, Stage.MEASURE)
        pinned = context.job.seed is not None
        self._draw = random.Random(context.seed + 3 if pinned else int.from_bytes(os.urandom(8)))
        self._context, self._builder, self._checker = context, context.builder, context.checker
        self._started, self._spent_s = perf_counter(), 0.0
        self._memories: list[Memory] | None = None
        self._matchings: dict[str, Matching] = {}
        self._shown: dict[str, _Shown] = {}
        self._takes_long = self._draw.random() < _LONG

    def check(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, BaseException]]:
        """Check some variants against the first one; returns those that failed, and why."""
        baseline, started = candidates[0], perf_counter()
        others = [candidate for candidate in candidates[1:] if self._can_check(candidate)]
        if not others or baseline.build is None or not self._can_check(baseline):
            return []
        failed: list[tuple[Candidate, BaseException]] = []
        usual = self._checker.reference
        references = References(self._builder, baseline.name, baseline.build, self._draw, usual, self._begins)
        for candidate in self._in_turn(others):
            spent_s = self._spent_s + perf_counter() - started
            expected_s = (_OTHER_STEPS + candidate.steps + candidate.lead_in) * candidate.step_s
            within = spent_s + expected_s < _SHARE * (perf_counter() - self._started)
            if not (within or self._is_due(candidate, len(others))):
                continue
            try:
                with checking(CheckKind.TIMED_STEPS):
                    self._check(references, candidate)
            except BaseException as error:
                if is_out_of_memory(error):
                    continue
                failed.append((candidate, error))
        self._spent_s += perf_counter() - started
        return failed

    def finish(self) -> None:
        """Tell what the checks showed."""
        for name, shown in self._shown.items():
            if not shown.blocks or name not in self._context.checked:
                continue
            self._context.reporter.channel.emit(
                Examined(
                    variant=name,
                    check=CheckKind.TIMED_STEPS,
                    count=shown.blocks,
                    values={
                        "late": shown.late,
                        "error": shown.error,
                        "allowed": shown.allowed,
                        "state": shown.state,
                        "fresh_ratio": shown.fresh.ratio if shown.fresh.fresh_s else None,
                    },
                )
            )

    def _can_check(self, candidate: Candidate) -> bool:
        name, context = candidate.variant.name, self._context
        return candidate.build is not None and name in context.checked and name not in context.checker.stateful

    def _is_due(self, candidate: Candidate, candidates: int) -> bool:
        """Whether to check it, at whatever cost: each short one once in a process, of long ones some in each."""
        if candidate.name in self._shown or candidate.name == CONTROL:
            return False
        if candidate.block_s < _SHORT_BLOCK_S or self._context.job.smoke:
            return True
        variants = candidates - 1
        most = ceil(variants / _PROCESSES_TO_CHECK_ALL) if variants > 1 or self._takes_long else 0
        return len(self._shown) < most

    def _in_turn(self, candidates: list[Candidate]) -> list[Candidate]:
        """Those that were checked least come first, in a random order; the control, which proves least, is last."""
        self._draw.shuffle(candidates)
        blocks = {name: shown.blocks for name, shown in self._shown.items()}
        return sorted(candidates, key=lambda candidate: (candidate.name == CONTROL, blocks.get(candidate.name, 0)))

    def _matching(self, candidate: Candidate, baseline_inputs: Tensors, inputs: Tensors) -> Matching:
        name = candidate.variant.name
        if self._memories is None:
            self._memories = [Memory(tensor) for tensor in baseline_inputs]
        if name not in self._matchings:
            dtypes = (candidate.build.work.dtype if candidate.build else None, self._checker.dtype)
            loosest = max((tensors.tolerance_of(tensor, tensor, dtypes) for tensor in inputs), default=0.0)
            self._matchings[name] = match(self._memories, inputs, loosest)
        return self._matchings[name]

    def _check(self, references: References, candidate: Candidate) -> None:
        build = candidate.build
        assert build is not None
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        matching = self._matching(candidate, references.inputs, inputs)
        both = bool(build.state) and bool(references.build.state)
        either = bool(build.state) or bool(references.build.state)
        if both:
            references.usual(1)  # whether it draws is known by then
            steps = self._steps(candidate, one_step=references.draws, advances=True)
            change, expected = self._chosen(references, candidate, matching, steps[1])
        else:
            change, expected = self._chosen(references, candidate, matching, 1)
            steps = self._steps(candidate, one_step=either or references.draws, advances=False)
        if not expected.output:
            return
        result = self._interrupted(candidate, change, inputs, matching, steps, restore=True)
        agreement = self._checker.agree(build, result.output, expected.output)
        looser = min(_LOOSEST, agreement.tolerance * _LOOSER ** (steps[1] - 1)) if both else 0.0
        if agreement.reason and not (agreement.error is not None and agreement.error <= looser):
            usual = references.usual(steps[1] if both else 1)
            stale = change is not None and self._checker.agree(build, result.output, usual.output).ok
            raise WrongOutputError(
                finding(
                    "timed_step_is_stale" if stale else "timed_step_is_wrong",
                    candidate.variant.name,
                    error=agreement.error,
                    allowed=agreement.tolerance,
                    change=change.name if change else "",
                ),
                agreement.error,
            )
        updates = state_updates.compare(
            result.before, result.after, expected.before, expected.after, steps=steps[1] if both else 1
        )
        if updates.reason:
            raise WrongOutputError(updates.reason, updates.error)
        if build.state and not both and change is not None:
            self._check_without_restore(candidate, change, inputs, matching, steps, result)
        self._remembers(references, candidate, inputs, matching)
        shown = self._shown.setdefault(candidate.name, _Shown())
        shown.blocks += 1
        shown.late += isinstance(change, LateElement)
        shown.error = max(shown.error, agreement.error or 0.0)
        shown.allowed = agreement.tolerance
        shown.state = max(shown.state, updates.compared)
        if candidate.name == candidate.variant.name:
            both_outputs = {references.name: expected.output, candidate.name: result.output}
            allowed = max(looser, agreement.tolerance)
            self._context.reporter.channel.emit(*output_samples(both_outputs, allowed, self._draw))

    def _check_without_restore(
        self,
        candidate: Candidate,
        change: Change,
        inputs: Tensors,
        matching: Matching,
        steps: tuple[int, int],
        restored: Result,
    ) -> None:
        """State of the variant's own may change its output, but no restore may be what makes it compute."""
        build = candidate.build
        assert build is not None
        result = self._interrupted(candidate, change, inputs, matching, steps, restore=False)
        if self._checker.agree(build, result.output, restored.output).ok:
            return
        usual = self._interrupted(candidate, None, inputs, matching, steps, restore=False)
        agreement = self._checker.agree(build, result.output, usual.output)
        if agreement.ok or not tensors.finite(result.output):
            raise WrongOutputError(finding("computes_after_restore", candidate.variant.name))

    def _steps(self, candidate: Candidate, *, one_step: bool, advances: bool) -> tuple[int, int]:
        """Steps of a block before and after its inputs change: nobody can know which is the last one.

        Where every tenth step computes, many after the change hide it, and blocks of so many tens before it would.
        """
        total = max(2, candidate.steps)
        fewest, most = min(2, total - 1), min(_MOST_STATEFUL_STEPS, total - 1) if advances else total - 1
        many = int(fewest * ((most + 1) / fewest) ** self._draw.random())
        after = 1 if one_step or self._draw.random() < (0.3 if advances else 0.5) else min(most, many)
        before = total - after
        return (before - self._draw.randint(0, before // 4), after) if candidate.steps > 1 else (1, 1)

    def _chosen(
        self, references: References, candidate: Candidate, matching: Matching, steps: int
    ) -> tuple[Change | None, Result]:
        """A change of the inputs that can be seen in the baseline's output, and what it leaves there."""
        assert candidate.build is not None
        usual = references.usual(steps)
        for change in references.changes():
            result = references.changed(change, steps) if change.fits(matching) else None
            if result and self._differ(candidate.build, result.output, usual.output, change):
                return change, result
        return None, usual

    def _differ(self, build: Build, output: Tensors, usual: Tensors, change: Change) -> bool:
        """Whether a change can be seen; one of everything is seen in a part of a large output."""
        if not isinstance(change, LateElement):
            output, usual = (
                [tensor.reshape(-1)[:_PART] if tensor.is_contiguous() else tensor for tensor in part]
                for part in (output, usual)
            )
        return not self._checker.agree(build, output, usual).ok

    def _interrupted(
        self,
        candidate: Candidate,
        change: Change | None,
        inputs: Tensors,
        matching: Matching,
        steps: tuple[int, int],
        *,
        restore: bool,
    ) -> Result:
        build, context = candidate.build, self._context
        assert build is not None
        self._begins(candidate.variant.name)
        undo: list[Callable[[], None]] = []
        before: Tensors = []

        def interrupt(returned: object) -> None:
            self._builder.wait()
            _spoil(build, returned, inputs)
            if restore:
                build.restore()
            before.extend(tensors.kept(build.state))
            if change is not None:
                undo.append(change.made(inputs, matching))
            self._builder.seed()
            self._builder.wait()

        try:
            returned = context.wall_clock.interrupted(build, steps, candidate.lead_in, interrupt)
            output = tensors.kept(outputs.read(build, returned))
            after = tensors.kept(build.state)
        finally:
            self._builder.wait()
            for action in undo:
                action()
            build.restore()
            self._builder.wait()
        return Result(output, before, after)

    def _remembers(self, references: References, candidate: Candidate, inputs: Tensors, matching: Matching) -> None:
        """RefusedError where steps take many times longer on new values, or alone, and the baseline's do not."""
        build = candidate.build
        if build is None or not inputs or (candidate.step_s > _SLOW_STEP_S and self._draw.random() > _SLOW):
            return
        self._begins(candidate.variant.name)
        shown = self._shown.setdefault(candidate.name, _Shown())
        wait = self._builder.wait
        time_pairs(shown.fresh, build, inputs, matching, pairs_for(candidate.step_s), self._draw, wait)
        shown.fresh.block_step_s = candidate.step_s
        if not shown.fresh.is_suspicious:
            return
        again, baseline = FreshTimes(), FreshTimes()
        time_pairs(again, build, inputs, matching, _PAIRS_TO_CONFIRM, self._draw, wait)
        again.block_step_s = self._context.wall_clock.step_s(build, candidate.steps)
        own = references.inputs
        self._begins(references.name)
        time_pairs(baseline, references.build, own, identity(own), _PAIRS_TO_CONFIRM, self._draw, wait)
        baseline.block_step_s = self._context.wall_clock.step_s(references.build, candidate.steps)
        shown.fresh = again
        refuse(candidate.variant.name, again, baseline)


def _spoil(build: Build, returned: object, inputs: Tensors) -> None:
    with suppress(RuntimeError):  # memory that a graph of the compiler has taken back
        outputs.spoil(build, outputs.read(build, returned), inputs)
