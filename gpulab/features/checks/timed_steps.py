"""Whether what is timed computes: timed blocks run on changing values, and the output of their last
step is compared.

Values change before a block, and now and then between two of its steps, without a pause. What must
come out is what the variant gave for them in the first step of a build (see `history`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from weakref import WeakKeyDictionary

import torch

from gpulab.core.events import Examined
from gpulab.core.finding import finding
from gpulab.core.statuses import CheckKind, Stage
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build, Generators
from gpulab.engine.measure.candidate import Candidate
from gpulab.engine.measure.clock import Interruption
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.processes.failure import (
    RefusedError,
    WrongOutputError,
    checking,
    is_out_of_memory,
)
from gpulab.features.checks import replay
from gpulab.features.checks.effects import compare_updates
from gpulab.features.checks.replay import StepTimes, TimedBuild
from gpulab.features.checks.stepping import read
from gpulab.features.checks.values import AllValues, Exchange, Expected, Own, Write, judged
from gpulab.scenario import CONTROL

_SHARE = 0.1
"""Of the time since the measurement began, for comparing outputs and for single steps."""
_ALLOWANCE_S = 0.01
"""Beside that share, in every process."""
_FIRST_INTERRUPTED, _INTERRUPTED = 0.5, 0.15
"""Part of the blocks in which values change between two steps, until one was, and after it."""
_SINGLE = 0.33
"""Part of these in which a single step is left."""
_OF_A_BLOCK = 0.02
"""The part of a block's time that writing all values may take."""
_BYTES_PER_S = 2e9
_SLOW_STEP_S, _SLOW, _QUICK = 5e-3, 0.25, 0.5
"""A step from which on it is slow, and the part of the processes after the first that take it
alone, and a quick one.
"""
_MOST_STATEFUL_STEPS, _MANY_STEPS, _MANY_S = 3, 64, 0.02
"""Steps after a restore that are compared: one of a few, and as many as some milliseconds hold."""
_OF_MANY = (0.05, 10.0)
"""What many steps may be off by: this, or so many times the tolerance."""
_DRAWING_STEPS = 4
_LOOSER, _LOOSEST = 4.0, 0.5
"""Times by which each further step of a training loosens the tolerance, and to what."""
Tensors = list[torch.Tensor]


@dataclass
class _Shown:
    """What the checks of a variant showed in this process."""

    blocks: int = 0
    late: int = 0
    error: float = 0.0
    allowed: float = 0.0
    state: int = 0
    times: StepTimes | None = None


@dataclass
class _Values:
    """Of one build: its inputs, and what writes values to them."""

    inputs: Tensors
    writes: list[tuple[Expected, Write, Write]] = field(default_factory=list)
    """(what the step gives then, writes the values, puts the build's own back)."""


@dataclass
class _Block:
    """A timed block that is under way: what its last step has to return, and how to undo."""

    expected: Expected | None
    undo: Write
    late: bool = False


class TimedChecks:
    """Of one measuring process: `prepare` and `compare` around each timed block, `check` once an
    epoch, `finish`.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._begins = partial(context.reporter.position.move, Stage.MEASURE)
        pinned = context.job.seed is not None
        self._draw = random.Random(context.seed + 3 if pinned else int.from_bytes(os.urandom(8)))
        self._context = context
        self._builder = context.builder
        self._checker = context.checker
        self._started = perf_counter()
        self._spent_s = 0.0
        self._values: WeakKeyDictionary[Build, _Values] = WeakKeyDictionary()
        """They hold the inputs of a build, so they go with it: memory may be short."""
        self._shown: dict[str, _Shown] = {}
        self._interrupted: set[str] = set()
        """Candidates of which some block was."""
        self._block: _Block | None = None
        self._baseline_times: StepTimes | None = None
        """As they were beside the last variant, of those that are looked at together."""

    def prepare(self, candidate: Candidate) -> Interruption | None:
        """Choose the next block's values; what is to happen between two of its steps."""
        self._block = None
        values = self._values_of(candidate)
        if values is None or not values.writes:
            return None
        few = [
            entry
            for entry in values.writes
            if self._can_interrupt(candidate.variant.name, values, entry[0])
        ]
        steps = candidate.steps
        if steps > 1 and few and self._is_to_interrupt(candidate):
            expected, write, undo = self._draw.choice(few)
            self._interrupted.add(candidate.name)
            self._block = _Block(expected, undo, late=True)
            return self._moment(steps), write
        expected, write, undo = self._draw.choice(values.writes)
        if self._draw.random() < 0.5:
            self._block = _Block(None, _nothing)
            return None
        write()
        self._block = _Block(expected, undo)
        return None

    def compare(self, candidate: Candidate) -> None:
        """After a block: put the values back, and compare its last output. WrongOutputError."""
        clock = self._context.clock
        block = self._block
        returned = clock.returned
        self._block = None
        clock.forget()
        build = candidate.build
        if block is None or build is None:
            return
        started = perf_counter()
        if not (block.late or self._is_within()):
            block.undo()
            return
        with checking(CheckKind.TIMED_STEPS):
            try:
                output = tensors.kept(read(build, returned))
            except RuntimeError:  # memory that a graph of the compiler has taken back
                return
            finally:
                block.undo()
                self._builder.wait()
            self._judge(candidate, build, block, output)
        self._spent_s += perf_counter() - started

    def check(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, BaseException]]:
        """Steps of each variant alone, and with state; those that failed, and why."""
        baseline, *others = candidates
        if not self._can_check(baseline):
            return []
        failed: list[tuple[Candidate, BaseException]] = []
        self._baseline_times = None
        for candidate in self._in_turn(others, baseline):
            try:
                with checking(CheckKind.TIMED_STEPS):
                    self._check(candidate, baseline)
            except BaseException as error:
                if not is_out_of_memory(error):
                    failed.append((candidate, error))
        return failed

    def finish(self) -> None:
        """Tell what the checks showed."""
        for name, shown in self._shown.items():
            if name not in self._context.checked or not (shown.blocks or shown.times):
                continue
            times = shown.times
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
                        "alone_ratio": times.alone_s / times.block_s if times else None,
                        "new_ratio": times.new_s / times.same_s if times and times.same_s else None,
                    },
                )
            )

    def _judge(self, candidate: Candidate, build: Build, block: _Block, output: Tensors) -> None:
        own = self._checker.own[candidate.variant.name]
        wanted = block.expected.output if block.expected else own.usual
        agreement = self._checker.stepping.agree(build, output, wanted)
        if block.expected is not None:
            reason = judged(own, block.expected, output, agreement, candidate.variant.name)
        else:
            reason = agreement.reason
        if reason is not None and not (
            build.state and not agreement.ok and reason.code != "timed_step_is_stale"
        ):
            if self._forgets_unwritten(build, own, block.expected):
                return
            raise WrongOutputError(reason, agreement.error)
        shown = self._shown.setdefault(candidate.name, _Shown())
        shown.blocks += 1
        shown.late += block.late
        shown.error = max(shown.error, agreement.error or 0.0)
        shown.allowed = agreement.tolerance

    def _forgets_unwritten(self, build: Build, own: Own, expected: Expected | None) -> bool:
        """Whether steps leave a part of their output unwritten on exchanged elements; then no block
        has these again.
        """
        values = self._values[build]
        if expected is None or not isinstance(expected.change, Exchange):
            return False
        if not self._checker.stepping.leaves_unwritten(
            build, expected.change, values.inputs, own.usual
        ):
            return False
        own.expected = [other for other in own.expected if other is not expected]
        values.writes = [entry for entry in values.writes if entry[0] is not expected]
        return True

    def _values_of(self, candidate: Candidate) -> _Values | None:
        """Of a candidate's build; None where its output says nothing of its inputs' values."""
        build = candidate.build
        name = candidate.variant.name
        own = self._checker.own.get(name)
        if (
            build is None
            or own is None
            or not self._can_check(candidate)
            or name in self._checker.drawing
        ):
            return None
        known = self._values.get(build)
        if known is None:
            known = self._values[build] = self._made(candidate, build, own)
        return known

    def _made(self, candidate: Candidate, build: Build, own: Own) -> _Values:
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        values = _Values(inputs)
        room = _OF_A_BLOCK * candidate.block_s * _BYTES_PER_S
        for expected in own.expected:
            cheap = (
                not isinstance(expected.change, AllValues)
                or sum(tensor.nbytes for tensor in inputs) < room
            )
            if cheap and not (build.state and self._checker.baseline_has_state):
                with suppress(RuntimeError, IndexError):
                    values.writes.append((expected, *expected.change.on(inputs)))
        return values

    def _can_interrupt(self, name: str, values: _Values, expected: Expected) -> bool:
        """A few elements in memory that the device reads in order: no wait is needed."""
        device = self._context.device.type
        on_device = all(tensor.device.type == device for tensor in values.inputs)
        asynchronous = self._checker.own[name].asynchronous
        return (
            not asynchronous
            and on_device
            and not isinstance(expected.change, AllValues)
            and not self._context.clock.flush
        )

    def _is_to_interrupt(self, candidate: Candidate) -> bool:
        if candidate.name not in self._interrupted:
            return self._context.job.smoke or self._draw.random() < _FIRST_INTERRUPTED
        return self._draw.random() < _INTERRUPTED and self._is_within()

    def _moment(self, steps: int) -> int:
        """Steps of a block before the values change: one, few or many are left, as likely."""
        left = 1 if self._draw.random() < _SINGLE else int(steps ** self._draw.random())
        return steps - max(1, min(steps - 1, left))

    def _can_check(self, candidate: Candidate) -> bool:
        name = candidate.variant.name
        context = self._context
        return (
            candidate.build is not None
            and name in context.checked
            and name not in context.checker.stateful
        )

    def _is_within(self) -> bool:
        return self._spent_s < _ALLOWANCE_S + _SHARE * (perf_counter() - self._started)

    def _in_turn(self, candidates: list[Candidate], baseline: Candidate) -> list[Candidate]:
        """Those not yet looked at, in a random order; others where there is time for it."""
        self._draw.shuffle(candidates)
        return [
            candidate
            for candidate in candidates
            if self._can_check(candidate)
            and candidate.name != CONTROL
            and self._is_due(candidate, baseline)
        ]

    def _is_due(self, candidate: Candidate, baseline: Candidate) -> bool:
        shown = self._shown.get(candidate.name)
        if shown is not None and shown.times is not None:
            return self._is_within()
        part = _QUICK if max(candidate.step_s, baseline.step_s) < _SLOW_STEP_S else _SLOW
        return not self._context.number or self._draw.random() < part

    def _check(self, candidate: Candidate, baseline: Candidate) -> None:
        build = candidate.build
        base = baseline.build
        assert build is not None
        assert base is not None
        name = candidate.variant.name
        own = self._checker.own.get(name)
        self._begins(name)
        if build.state and base.state:
            self._check_state(candidate, build, base)
        if name in self._checker.drawing and self._draws_once(build):
            raise RefusedError(finding("draws_when_seeded", name))
        shown = self._shown.setdefault(candidate.name, _Shown())
        if own is None or baseline.variant.name not in self._checker.own:
            return
        subjects = self._subject(candidate, build), self._subject(baseline, base)
        clocks = self._context.clock, self._context.other_clock
        known = self._baseline_times if baseline.step_s > _SLOW_STEP_S else None
        shown.times, self._baseline_times, reason = replay.examine(
            self._builder, clocks, *subjects, self._draw, known
        )
        if reason is not None:
            raise RefusedError(reason)

    def _subject(self, candidate: Candidate, build: Build) -> TimedBuild:
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        return TimedBuild(candidate, build, inputs, self._checker.own[candidate.variant.name])

    def _draws_once(self, build: Build) -> bool:
        """Whether only the first step after the generators were seeded draws anything."""
        states = []
        for steps in (1, _DRAWING_STEPS):
            self._builder.seed()
            self._context.wall_clock.block(build, steps, lead_in=0)
            self._context.wall_clock.forget()
            states.append(Generators(self._builder))
        return states[0] == states[1]

    def _check_state(self, candidate: Candidate, build: Build, base: Build) -> None:
        """Steps in a block after its state was restored, against as many of the baseline's:
        WrongOutputError.
        """
        few = self._draw.randint(1, _MOST_STATEFUL_STEPS)
        many = min(_MANY_STEPS, int(_MANY_S / max(candidate.step_s, 1e-9)))
        steps = (
            many
            if many > few and self._draw.random() < 0.5
            else min(few, max(1, candidate.steps - 1))
        )
        steps = 1 if candidate.variant.name in self._checker.drawing else steps
        expected = self._steps_after_restore(base, 0, steps)
        output = self._steps_after_restore(
            build, self._draw.randint(0, min(candidate.steps, 100)), steps
        )
        agreement = self._checker.stepping.agree(build, output.output, expected.output)
        looser = min(_LOOSEST, agreement.tolerance * _LOOSER ** (steps - 1))
        allowed, times = _OF_MANY
        if steps > _MOST_STATEFUL_STEPS:
            looser = min(_LOOSEST, max(allowed, times * agreement.tolerance))
        if agreement.reason and not (agreement.error is not None and agreement.error <= looser):
            raise WrongOutputError(
                finding(
                    "timed_step_is_wrong",
                    candidate.variant.name,
                    error=agreement.error,
                    allowed=agreement.tolerance,
                    change="",
                ),
                agreement.error,
            )
        compared = min(steps, _MOST_STATEFUL_STEPS)
        updates = compare_updates(
            output.before, output.after, expected.before, expected.after, steps=compared
        )
        if updates.reason:
            raise WrongOutputError(updates.reason, updates.error)
        shown = self._shown.setdefault(candidate.name, _Shown())
        shown.blocks += 1
        shown.state = max(shown.state, updates.compared)

    def _steps_after_restore(self, build: Build, before: int, steps: int) -> _Stepped:
        """Steps, a restore of the state among them, and as many steps as are asked for."""
        starts: Tensors = []

        def restore() -> None:
            build.restore()
            starts.extend(tensors.kept(build.state))
            self._builder.seed()

        clock = self._context.wall_clock
        clock.block(build, before + steps, lead_in=0, interruption=(before, restore))
        returned = clock.returned
        clock.forget()
        output = tensors.kept(read(build, returned))
        after = tensors.kept(build.state)
        build.restore()
        self._builder.wait()
        return _Stepped(output, starts, after)


@dataclass(frozen=True)
class _Stepped:
    """What some steps left: their output, and the state before and after them."""

    output: Tensors
    before: Tensors
    after: Tensors


def _nothing() -> None:
    pass
