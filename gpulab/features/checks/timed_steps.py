"""Whether what is timed computes: timed blocks run on changing values, and the output of their last
step is compared.

Values change before a block, and now and then between two of its steps, without a pause. What must
come out is what the variant gave for them in the first step of a build (`values`). Once an epoch
some steps are taken beside the blocks: alone, on new values (`replay`), and with their state
restored on the way.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from weakref import WeakKeyDictionary

import torch

from gpulab.core.events import Examined
from gpulab.core.findings import Value
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
from gpulab.features.checks.effects import Pairs, begin_alike, compare_updates
from gpulab.features.checks.findings import (
    draws_when_seeded,
    state_diverges,
    timed_step_is_stale,
    timed_step_is_wrong,
)
from gpulab.features.checks.replay import StepTimes, TimedBuild, nothing
from gpulab.features.checks.stepping import Tensors, read
from gpulab.features.checks.values import AllValues, Exchange, Expected, Own, Write, judged
from gpulab.scenario import CONTROL

_SHARE = 0.1
"""Of the time since the measurement began, for comparing outputs and for single steps."""
_ALLOWANCE_S = 0.01
"""Beside that share, in every process."""
_FIRST_INTERRUPTED = 0.5
_INTERRUPTED = 0.15
"""Part of the blocks in which values change between two steps, until one was, and after it."""
_SINGLE = 0.33
"""Part of these in which a single step is left."""
_OF_A_BLOCK = 0.02
"""The part of a block's time that writing all values may take."""
_BYTES_PER_S = 2e9
_SLOW_STEP_S = 5e-3
_SLOW = 0.25
_QUICK = 0.5
"""A slow step; the part of later processes that take it alone, and a quick one."""
_MOST_STATEFUL_STEPS = 3
_MANY_STEPS = 64
_MANY_S = 0.02
"""Steps after a restore that are compared: one of a few, and as many as some milliseconds hold."""
_OF_MANY = (0.05, 10.0)
"""What many steps may be off by: this, or so many times the tolerance."""
_DRAWING_STEPS = 4
_LOOSER = 4.0
_LOOSEST = 0.5
"""Times by which each further step of a training loosens the tolerance, and to what."""


@dataclass
class _Shown:
    """What the checks of a variant showed in this process."""

    blocks: int = 0
    late: int = 0
    error: float = 0.0
    allowed: float = 0.0
    state: int = 0
    times: StepTimes | None = None
    block_ratio: float | None = None
    """Its speedup in the blocks that were timed beside single steps."""

    @property
    def values(self) -> dict[str, Value]:
        """As values of an event."""
        values: dict[str, Value] = {name: getattr(self, name) for name in _COUNTED}
        times = self.times
        values["alone_ratio"] = times.alone_s / times.block_s if times else None
        values["new_ratio"] = times.new_s / times.same_s if times and times.same_s else None
        values["block_ratio"] = self.block_ratio
        return values


_COUNTED = ("late", "error", "allowed", "state")


@dataclass(frozen=True, eq=False)
class _Write:
    """Other values for a build's inputs: what the step gives, how to write and undo them."""

    expected: Expected
    write: Write
    undo: Write
    between_steps: bool
    """Whether it needs no wait: a few elements in memory that the device reads in order."""


@dataclass(frozen=True)
class _Block:
    """A timed block that is under way: the values of its last step, None being its own."""

    values: _Write | None
    late: bool = False


class TimedChecks:
    """Of one process: `prepare` and `compare` around a block, `check` each epoch, `finish`."""

    def __init__(self, context: WorkerContext) -> None:
        self._begins = partial(context.reporter.position.move, Stage.MEASURE)
        pinned = context.job.seed is not None
        self._draw = random.Random(context.seed + 3 if pinned else int.from_bytes(os.urandom(8)))
        self._context = context
        self._builder = context.builder
        self._checker = context.checker
        self._started = perf_counter()
        self._spent_s = 0.0
        self._writes: WeakKeyDictionary[Build, list[_Write]] = WeakKeyDictionary()
        """They hold the inputs of a build, so they go with it: memory may be short."""
        self._shown: defaultdict[str, _Shown] = defaultdict(_Shown)
        self._interrupted: set[str] = set()
        """Candidates of which some block was."""
        self._block: _Block | None = None
        self._baseline_times: StepTimes | None = None
        """As they were beside the last variant, of those that are looked at together."""

    def prepare(self, candidate: Candidate) -> Interruption | None:
        """Choose the next block's values; what is to happen between two of its steps."""
        self._block = None
        writes = self._writes_of(candidate)
        if not writes:
            return None
        few = [values for values in writes if values.between_steps]
        if candidate.steps > 1 and few and self._is_to_interrupt(candidate):
            values = self._draw.choice(few)
            self._interrupted.add(candidate.name)
            self._block = _Block(values, late=True)
            return Interruption(self._moment(candidate.steps), values.write)
        if self._draw.random() < 0.5:
            self._block = _Block(None)
            return None
        values = self._draw.choice(writes)
        values.write()
        self._block = _Block(values)
        return None

    def compare(self, candidate: Candidate) -> None:
        """After a block: put the values back, and compare its last output. WrongOutputError."""
        clock = self._context.clock
        returned = clock.returned
        clock.forget()
        block = self._block
        self._block = None
        build = candidate.build
        if block is None or build is None:
            return
        undo = block.values.undo if block.values else nothing
        if not (block.late or self._is_within()):
            undo()
            return
        started = perf_counter()
        with checking(CheckKind.TIMED_STEPS):
            try:
                output = tensors.kept(read(build, returned))
            except RuntimeError:  # memory that a graph of the compiler has taken back
                return
            finally:
                undo()
                self._builder.wait()
            self._check_output(candidate, build, block, output)
        self._spent_s += perf_counter() - started

    def check(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, BaseException]]:
        """Steps of each variant alone, and with state; those that failed, and why."""
        baseline, *others = candidates
        failed: list[tuple[Candidate, BaseException]] = []
        if not self._context.number:
            for candidate in candidates:
                with suppress(torch.OutOfMemoryError):
                    self._note_divergence(candidate)
        if not self._can_check(baseline):
            return failed
        self._baseline_times = None
        self._draw.shuffle(others)
        for candidate in others:
            if not self._is_due(candidate, baseline):
                continue
            self._begins(candidate.variant.name)
            try:
                with checking(CheckKind.TIMED_STEPS):
                    self._check_state(candidate, baseline)
                    self._check_draws(candidate)
                    self._check_alone(candidate, baseline)
            except BaseException as error:
                if not is_out_of_memory(error):
                    failed.append((candidate, error))
        return failed

    def _note_divergence(self, candidate: Candidate) -> None:
        """Catches trainings that blow up within a block: NaNs are not what is to be timed."""
        build = candidate.build
        if build is None or candidate.name == CONTROL or not tensors.has_nan(build.state):
            return
        build.restore()
        if tensors.has_nan(build.state):  # as it was built
            return
        self._context.reporter.channel.emit(
            Examined(
                variant=candidate.variant.name,
                check=CheckKind.TIMED_STEPS,
                reason=state_diverges(candidate.variant.name, steps=candidate.steps),
            )
        )

    def finish(self) -> None:
        """Tell what the checks showed."""
        for name, shown in self._shown.items():
            if name not in self._context.checked or not (shown.blocks or shown.times):
                continue
            self._context.reporter.channel.emit(
                Examined(
                    variant=name,
                    check=CheckKind.TIMED_STEPS,
                    count=shown.blocks,
                    values=shown.values,
                )
            )

    def _check_output(
        self, candidate: Candidate, build: Build, block: _Block, output: Tensors
    ) -> None:
        """Catches steps that compute where they are checked, and not where they are timed: what
        the last step of a timed block returned is what a first step gives for the same values.
        """
        name = candidate.variant.name
        own = self._checker.own[name]
        expected = block.values.expected if block.values else None
        agreement = self._checker.stepping.agree(
            build, output, expected.output if expected else own.usual
        )
        reason = agreement.reason
        if expected is not None:
            reason = judged(own, expected, output, agreement, name)
        # of a step whose state other steps changed before it only a stale output says anything
        if reason is not None and build.state and reason.code != timed_step_is_stale.code:
            reason = None
        if reason is not None:
            if block.values and self._leaves_unwritten(build, own, block.values):
                return
            raise WrongOutputError(reason, agreement.error)
        shown = self._shown[candidate.name]
        shown.blocks += 1
        shown.late += block.late
        shown.error = max(shown.error, agreement.error or 0.0)
        shown.allowed = agreement.tolerance

    def _leaves_unwritten(self, build: Build, own: Own, values: _Write) -> bool:
        """Whether exchanged elements leave output unwritten; then no block has them again."""
        change = values.expected.change
        if not isinstance(change, Exchange):
            return False
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        if not self._checker.stepping.leaves_unwritten(build, change, inputs, own.usual):
            return False
        own.expected.remove(values.expected)
        self._writes[build].remove(values)
        return True

    def _writes_of(self, candidate: Candidate) -> list[_Write]:
        """For a candidate's build; none where its output says nothing of its inputs' values."""
        build = candidate.build
        name = candidate.variant.name
        own = self._checker.own.get(name)
        if build is None or own is None or name in self._checker.drawing:
            return []
        if not self._can_check(candidate):
            return []
        if build not in self._writes:
            self._writes[build] = self._new_writes(candidate, build, own)
        return self._writes[build]

    def _new_writes(self, candidate: Candidate, build: Build, own: Own) -> list[_Write]:
        if build.state and self._checker.baseline_has_state:
            return []
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        room = _OF_A_BLOCK * candidate.block_s * _BYTES_PER_S
        too_large = sum(tensor.nbytes for tensor in inputs) >= room
        device = self._context.device.type
        in_order = all(tensor.device.type == device for tensor in inputs)
        in_order = in_order and not own.asynchronous and not self._context.clock.flush
        writes = []
        for expected in own.expected:
            all_values = isinstance(expected.change, AllValues)
            if all_values and too_large:
                continue
            with suppress(RuntimeError, IndexError):
                write, undo = expected.change.on(inputs)
                writes.append(_Write(expected, write, undo, in_order and not all_values))
        return writes

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
        if candidate.build is None or name not in self._context.checked:
            return False
        return name not in self._checker.stateful

    def _is_within(self) -> bool:
        return self._spent_s < _ALLOWANCE_S + _SHARE * (perf_counter() - self._started)

    def _is_due(self, candidate: Candidate, baseline: Candidate) -> bool:
        """One not yet looked at; another where there is time for it."""
        if not self._can_check(candidate) or candidate.name == CONTROL:
            return False
        if candidate.name in self._shown and self._shown[candidate.name].times is not None:
            return self._is_within()
        part = _QUICK if max(candidate.step_s, baseline.step_s) < _SLOW_STEP_S else _SLOW
        return not self._context.number or self._draw.random() < part

    def _check_alone(self, candidate: Candidate, baseline: Candidate) -> None:
        """Catches remembered results: steps that take longer alone, or on new values."""
        shown = self._shown[candidate.name]
        variant = self._timed_build(candidate)
        reference = self._timed_build(baseline)
        if variant is None or reference is None:
            return
        clocks = self._context.clock, self._context.other_clock
        known = self._baseline_times if baseline.step_s > _SLOW_STEP_S else None
        shown.times, self._baseline_times, reason = replay.examine(
            self._builder, clocks, variant, reference, self._draw, known
        )
        if reason is not None:
            raise RefusedError(reason)
        base_s = self._baseline_times.block_s / baseline.items
        shown.block_ratio = base_s / (shown.times.block_s / candidate.items)

    def _timed_build(self, candidate: Candidate) -> TimedBuild | None:
        own = self._checker.own.get(candidate.variant.name)
        if own is None or candidate.build is None:
            return None
        inputs = tensors.live_leaves("inputs", candidate.build.work.inputs)
        return TimedBuild(candidate, candidate.build, inputs, own)

    def _check_draws(self, candidate: Candidate) -> None:
        """Catches random numbers that are drawn once and used again: RefusedError where only the
        first step after the generators were seeded draws anything.
        """
        name = candidate.variant.name
        if name in self._checker.drawing and self._draws_once(candidate.build):
            raise RefusedError(draws_when_seeded(name))

    def _draws_once(self, build: Build | None) -> bool:
        assert build is not None
        states = []
        for steps in (1, _DRAWING_STEPS):
            self._builder.seed()
            self._context.wall_clock.block(build, steps, lead_in=0)
            self._context.wall_clock.forget()
            states.append(Generators(self._builder))
        return states[0] == states[1]

    def _check_state(self, candidate: Candidate, baseline: Candidate) -> None:
        """Catches steps that compute only once their state was restored, and updates that are left
        out: steps after a restore within a block, against as many of the baseline's.
        WrongOutputError.
        """
        build = candidate.build
        base = baseline.build
        assert build is not None
        assert base is not None
        if not (build.state and base.state):
            return
        steps = self._steps_with_state(candidate)
        before = self._draw.randint(0, min(candidate.steps, 100))
        expected = self._steps_after_restore(base, 0, steps)
        if steps > 1 and not tensors.finite(expected.output):
            steps = 1
            expected = self._steps_after_restore(base, 0, steps)
        actual = self._steps_after_restore(build, before, steps, like=expected.before)
        agreement = self._checker.stepping.agree(build, actual.output, expected.output)
        looser = agreement.tolerance * _LOOSER ** (steps - 1)
        if steps > _MOST_STATEFUL_STEPS:
            least, times = _OF_MANY
            looser = max(least, times * agreement.tolerance)
        error = agreement.error
        if agreement.reason and (error is None or error > min(_LOOSEST, looser)):
            reason = timed_step_is_wrong(
                candidate.variant.name,
                error=error,
                allowed=agreement.tolerance,
                change="",
            )
            raise WrongOutputError(reason, error)
        compared = min(steps, _MOST_STATEFUL_STEPS)
        updates = compare_updates(
            actual.before,
            actual.after,
            expected.before,
            expected.after,
            steps=compared,
            pairs=actual.pairs,
        )
        if updates.reason:
            raise WrongOutputError(updates.reason, updates.error)
        shown = self._shown[candidate.name]
        shown.blocks += 1
        shown.state = max(shown.state, updates.compared)

    def _steps_with_state(self, candidate: Candidate) -> int:
        """One of a few, or as many as some milliseconds hold."""
        few = self._draw.randint(1, _MOST_STATEFUL_STEPS)
        many = min(_MANY_STEPS, int(_MANY_S / max(candidate.step_s, 1e-9)))
        if candidate.variant.name in self._checker.drawing:
            return 1
        if many > few and self._draw.random() < 0.5:
            return many
        return min(few, max(1, candidate.steps - 1))

    def _steps_after_restore(
        self, build: Build, before: int, steps: int, *, like: Tensors | None = None
    ) -> _Stepped:
        """Steps, a restore of the state among them, and as many steps as are asked for. What
        begins `like` another state begins as that one.
        """
        starts: Tensors = []
        pairs: list[tuple[int, int]] = []

        def restore() -> None:
            build.restore()
            pairs.extend(begin_alike(build.state, like or ()))
            starts.extend(tensors.kept(build.state))
            self._builder.seed()

        clock = self._context.wall_clock
        interruption = Interruption(before, restore, restores=True)
        clock.block(build, before + steps, lead_in=0, interruption=interruption)
        returned = clock.returned
        clock.forget()
        output = tensors.kept(read(build, returned))
        after = tensors.kept(build.state)
        build.restore()
        self._builder.wait()
        return _Stepped(output, starts, after, pairs)


@dataclass(frozen=True)
class _Stepped:
    """What some steps left: their output, and the state before and after them."""

    output: Tensors
    before: Tensors
    after: Tensors
    pairs: Pairs
