"""Whether what is timed computes: timed blocks run on changing values, and the output of their last
step is compared.

Values change before a block, and now and then between two of its steps, without a pause. What must
come out is what the variant gave for them in the first step of a build (`values`). Once an epoch
some steps are taken beside the blocks: alone, on new values (`replay`), and with their state
restored on the way.
"""

from __future__ import annotations

import gc
import itertools
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch

from gpulab.core.events import Examined
from gpulab.core.findings import Finding, Value
from gpulab.core.statuses import CheckKind, Stage
from gpulab.engine.build import tensors
from gpulab.engine.build.agreement import agree
from gpulab.engine.build.build import Build, Generators
from gpulab.engine.measure.candidate import Candidate
from gpulab.engine.measure.clock import Interruption
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.measure.outputs import read
from gpulab.engine.processes.failure import (
    RefusedError,
    WrongOutputError,
    checking,
    is_out_of_memory,
)
from gpulab.features.checks import replay
from gpulab.features.checks.effects import LOOSER, Pairs, begin_alike, compare_updates
from gpulab.features.checks.findings import (
    draws_when_seeded,
    first_step_does_more,
    no_block_on_other_values,
    state_diverges,
    timed_step_is_stale,
    timed_step_is_wrong,
)
from gpulab.features.checks.replay import StepTimes, TimedBuild
from gpulab.features.checks.stepping import Tensors
from gpulab.features.checks.values import OTHER, Own, Write, differ, exchange
from gpulab.scenario import CONTROL

_SHARE = 0.1
"""Of the time since the measurement began, for comparing outputs and for single steps."""
_ALLOWANCE_S = 0.01
"""Beside that share, in every process."""
_CHANGED = 0.5
_FIRST_INTERRUPTED = 0.5
_INTERRUPTED = 0.15
"""Part of the blocks in which values change between two steps, until one was, and after it."""
_SINGLE = 0.33
"""Part of these in which a single step is left."""
_WRITING_SHARE = _COPYING_SHARE = 0.02
"""The part of a block's time that writing all values between two steps may take; and of the run's
time that all copies of values may.
"""
_COPIES = 3
"""Of values that a block on others takes: what is there is kept, and put back."""
_BYTES_PER_S = 2e9
_FRESH = 3
"""Sets of values that nobody had before, of a look."""
_BUILDING_S = 1.0
"""What the builds of these may take in the first process, of all variants; each has one set."""
_MOST_BYTES = 1 << 29
_FRESH_SEEDS = 1_400_003
_SLOW_STEP_S = 5e-3
_SLOW = 0.25
_QUICK = 0.5
"""A slow step; the part of later processes that take it alone, and a quick one."""
_MOST_STATEFUL_STEPS = 3
_MANY_STEPS = 64
_MOST_BEFORE = 100
_MANY_S = 0.02
"""Steps after a restore that are compared: one of a few, and as many as some milliseconds hold."""
_MANY_STEPS_ERROR = (0.05, 10.0)
"""What many steps may be off by: this, or so many times the tolerance."""
_DRAWING_STEPS = 4
_FIRST_STEPS = 3
_FIRST_LONGER = 2.0
"""Times as long as later ones that a step from restored state takes, if it does more."""
_LOOSEST = 0.25
"""What further steps of a training loosen the tolerance to."""


def _nothing() -> None:
    pass


@dataclass
class _Shown:
    """The results of a variant's checks in this process."""

    blocks: int = 0
    changed: int = 0
    """Of these, with other values or from restored state: the others prove little."""
    late: int = 0
    error: float = 0.0
    allowed: float = 0.0
    state: int = 0
    lost: float | None = None
    """Its speedup on the same values over that on new ones."""

    @property
    def values(self) -> dict[str, Value]:
        """As values of an event."""
        return {
            "late": self.late,
            "error": self.error,
            "allowed": self.allowed,
            "state": self.state,
            "lost_on_new": self.lost,
        }


@dataclass(frozen=True)
class _Block:
    """A timed block that is under way: whether on other values, and what puts the build's back."""

    changed: bool = False
    undo: Write = _nothing
    late: bool = False


Failed = tuple[Candidate, BaseException]
"""A candidate, and why it is taken out."""


class TimedChecks:
    """The checks on timed steps: `prepare` and `compare` around a block, `check` each epoch,
    `finish`. Where variants run one at a time each has a `look`, and then `judge` compares.
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
        self._copied_s = 0.0
        """About what copies of whole values have taken."""
        self._shown: defaultdict[str, _Shown] = defaultdict(_Shown)
        self._block: _Block | None = None
        self._first_noted: set[str] = set()
        self._first_changed: set[str] = set()
        self._seeds = itertools.count(_FRESH_SEEDS)
        """Of values that nobody had before."""
        self._looks = not context.number or self._draw.random() < _SLOW
        """Whether variants that run one at a time are looked at in this process; with"""
        self._stateful_steps = self._draw.randint(1, _MOST_STATEFUL_STEPS)
        self._pause_s = replay.pause(self._draw)
        self._taken: dict[str, StepTimes] = {}
        """Times of the last look at each."""
        self._stepped: dict[str, _Stepped] = {}

    def prepare(self, candidate: Candidate) -> Interruption | None:
        """Choose the next block's values; what is to happen between two of its steps."""
        self._block = None
        own = self._own_of(candidate)
        build = candidate.build
        if own is None or build is None or candidate.variant.name in self._checker.drawing:
            return None
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        copying_s = sum(tensor.nbytes for tensor in inputs) / _BYTES_PER_S
        if not self._is_to_change(candidate, copying_s):
            self._block = _Block()
            return None
        try:
            write, undo = exchange(inputs, own.values)
        except RuntimeError:  # there is no memory for copies
            return None
        self._copied_s += _COPIES * copying_s
        quick = copying_s <= _WRITING_SHARE * candidate.block_s
        in_order = all(tensor.device.type == self._context.device.type for tensor in inputs)
        between = quick and in_order and not own.asynchronous and not self._context.clock.flush
        if between and candidate.steps > 1 and self._is_to_interrupt(candidate):
            self._block = _Block(True, undo, late=True)
            return Interruption(self._moment(candidate.steps), write)
        write()
        self._block = _Block(True, undo)
        return None

    def _is_to_change(self, candidate: Candidate, copying_s: float) -> bool:
        """In half of the blocks, as far as copies take a small part of the run."""
        job = self._context.job
        if job.smoke:
            return not self._shown[candidate.name].changed
        # of several ranks no other step is checked, and they may have few blocks
        if job.ranks > 1 and not self._context.number and candidate.name not in self._first_changed:
            self._first_changed.add(candidate.name)
            return True
        allowed_s = _COPYING_SHARE * (perf_counter() - self._started)
        return self._copied_s + _COPIES * copying_s <= allowed_s and self._draw.random() < _CHANGED

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
        first = block.changed and not self._shown[candidate.name].changed
        if not (block.late or first or self._is_within()):
            block.undo()
            return
        started = perf_counter()
        with checking(CheckKind.TIMED_STEPS):
            self._check_output(candidate, build, block, returned)
        self._spent_s += perf_counter() - started

    def check(self, candidates: Sequence[Candidate]) -> list[Failed]:
        """Steps of each variant alone, and with state; those that failed, and why."""
        baseline, *others = candidates
        failed: list[Failed] = []
        for candidate in candidates:
            self._note_states(candidate)
        if not self._can_check(baseline):
            return failed
        self._taken.pop(baseline.name, None)
        self._draw.shuffle(others)
        for candidate in others:
            if not self._is_due(candidate, baseline):
                continue
            self._begins(candidate.variant.name)
            try:
                with checking(CheckKind.TIMED_STEPS):
                    self._check_state(candidate, baseline)
                    self._check_draws(candidate)
                    self._check_changed(candidate)
                    self._check_alone(candidate, baseline)
            except BaseException as error:
                if not is_out_of_memory(error):
                    failed.append((candidate, error))
        return failed

    def look(self, candidate: Candidate, attempt: int = 0) -> None:
        """The same of one variant, where no other is built: what `judge` holds against each other.
        Raises what a step raises.
        """
        if not attempt:
            self._note_states(candidate)
        if not self._looks or candidate.name == CONTROL or not self._can_check(candidate):
            return
        self._begins(candidate.variant.name)
        build = candidate.build
        assert build is not None
        with checking(CheckKind.TIMED_STEPS):
            if build.state and not self._context.job.increasing_memory:
                stepped = self._steps_after_restore(build, 0, self._stateful_steps)
                self._stepped[candidate.name] = stepped
            self._check_draws(candidate)
            self._check_changed(candidate)
            self._take([candidate], replay.repeats_of(attempt, candidate))

    def judge(self, baseline: Candidate, others: Sequence[Candidate]) -> list[Failed]:
        """Variants of which the last look differs from the baseline's, and why."""
        failed: list[Failed] = []
        expected = self._stepped.get(baseline.name)
        for candidate in others:
            actual = self._stepped.get(candidate.name)
            try:
                with checking(CheckKind.TIMED_STEPS):
                    if actual and expected and tensors.finite(expected.output):
                        self._compare_state(candidate, actual, expected, self._stateful_steps)
                    if reason := self._suspicion(candidate, baseline):
                        raise RefusedError(reason)
            except (WrongOutputError, RefusedError) as error:
                failed.append((candidate, error))
        return failed

    def _note_states(self, candidate: Candidate) -> None:
        """In the first process: catches trainings that blow up within a block, where NaNs are what
        is timed; and steps in place on their own state, of which a block times the later ones.
        """
        build = candidate.build
        name = candidate.name
        if self._context.number or build is None or not build.state or name == CONTROL:
            return
        with suppress(torch.OutOfMemoryError):
            if tensors.has_nan(build.state):
                build.restore()
                if not tensors.has_nan(build.state):  # as it was built
                    self._tell(name, state_diverges(name, steps=candidate.steps))
        if name not in self._context.checked - self._first_noted or self._context.job.ranks > 1:
            return
        self._first_noted.add(name)
        with suppress(Exception):  # it is raised again where it counts
            ratio = min(self._first_over_later(build) for _ in range(2))
            if ratio >= _FIRST_LONGER:
                self._tell(name, first_step_does_more(name, ratio=ratio))

    def _tell(self, name: str, reason: Finding) -> None:
        self._context.reporter.channel.emit(
            Examined(variant=name, check=CheckKind.TIMED_STEPS, count=0, reason=reason)
        )

    def _first_over_later(self, build: Build) -> float:
        """The shortest first step after a restore, over the shortest of the ones after it."""
        clock = self._context.wall_clock
        first: list[float] = []
        later: list[float] = []
        for _ in range(_FIRST_STEPS):
            build.restore()
            with build.context():
                first.append(clock.single_s(build))
                later += [clock.single_s(build) for _ in range(_FIRST_STEPS)]
            clock.forget()
        build.restore()
        return min(first) / min(later)

    def finish(self) -> None:
        """Tell what the checks showed."""
        for name, shown in self._shown.items():
            if name not in self._context.checked:
                continue
            self._context.reporter.channel.emit(
                Examined(
                    variant=name,
                    check=CheckKind.TIMED_STEPS,
                    count=shown.blocks,
                    values=shown.values,
                    skipped=None if shown.changed else no_block_on_other_values(name),
                )
            )

    def _check_output(
        self, candidate: Candidate, build: Build, block: _Block, returned: object
    ) -> None:
        """Catches steps that compute where they are checked, and not where they are timed: what
        the last step of a timed block returned is what a first step gives for the same values.
        """
        try:
            output = tensors.kept(read(build, returned))
        except RuntimeError:  # memory that a graph of the compiler has taken back
            return
        finally:
            block.undo()
            self._builder.wait()
        name = candidate.variant.name
        own = self._checker.own[name]
        expected = own.expected if block.changed else own.usual
        agreement = self._checker.stepping.agree(build, output, expected)
        error = agreement.error
        reason = agreement.reason
        if block.changed and own.stale(output):
            reason = timed_step_is_stale(name, change=OTHER)
        elif build.state:  # other steps changed it before: only a stale output says anything
            reason = None
        elif block.changed and reason is not None:
            allowed = agreement.tolerance
            reason = timed_step_is_wrong(name, error=error, allowed=allowed, change=OTHER)
        if reason is not None:
            raise WrongOutputError(reason, error)
        shown = self._shown[candidate.name]
        shown.blocks += 1
        shown.changed += block.changed
        shown.late += block.late
        shown.error = max(shown.error, error or 0.0)
        shown.allowed = agreement.tolerance

    def _own_of(self, candidate: Candidate) -> Own | None:
        """Return the output of a candidate's variant; None where a block's cannot be held to it."""
        name = candidate.variant.name
        build = candidate.build
        if build is None or not self._can_check(candidate):
            return None
        if build.state and self._checker.stepping.baseline_has_state:
            return None
        own = self._checker.own.get(name)
        return own if own is not None and own.values else None

    def _is_to_interrupt(self, candidate: Candidate) -> bool:
        if not self._shown[candidate.name].late:
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
        if candidate.name in self._taken:
            return self._is_within()
        part = _QUICK if max(candidate.step_s, baseline.step_s) < _SLOW_STEP_S else _SLOW
        return not self._context.number or self._draw.random() < part

    def _check_alone(self, candidate: Candidate, baseline: Candidate) -> None:
        """Catches remembered results: steps that take longer alone, or on new values. Those of
        several ranks wait for each other, which takes what it takes.
        """
        self._pause_s = replay.pause(self._draw)
        known = baseline.step_s > _SLOW_STEP_S and baseline.name in self._taken
        reason = None
        for attempt in range(replay.CONFIRM):
            taken = [candidate] if known and not attempt else [candidate, baseline]
            self._take(taken, replay.repeats_of(attempt, candidate, baseline))
            reason = self._suspicion(candidate, baseline)
            if reason is None:
                break
        if reason is not None:
            raise RefusedError(reason)

    def _take(self, candidates: Sequence[Candidate], repeats: int) -> None:
        """Measure their steps alone and on new values, where that can be done with all of them."""
        known = all(candidate.variant.name in self._checker.own for candidate in candidates)
        if not known or self._context.job.ranks > 1:
            return
        subjects = list(map(self._timed_build, candidates))
        clocks = self._context.clock, self._context.other_clock
        taken = replay.take(self._builder, clocks, subjects, repeats, self._pause_s)
        for candidate, times in zip(candidates, taken, strict=True):
            self._taken[candidate.name] = times

    def _suspicion(self, candidate: Candidate, baseline: Candidate) -> Finding | None:
        """Return what is suspicious about the last looks at both, if there were any."""
        shown = self._shown[candidate.name]
        if not {candidate.name, baseline.name} <= self._taken.keys():
            return None
        ours = self._taken[candidate.name]
        theirs = self._taken[baseline.name]
        shown.lost = replay.lost_on_new(ours, theirs)
        learns = self._context.other_clock is None
        return replay.suspicion(candidate, ours, baseline, theirs, learns=learns)

    def _timed_build(self, candidate: Candidate) -> TimedBuild:
        build = candidate.build
        assert build is not None
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        fresh = self._fresh_values(candidate, inputs)
        name = candidate.variant.name
        waits = replay.waiting(build, self._checker.own[name])
        return TimedBuild(candidate, waits, inputs, fresh, name == self._checker.baseline)

    def _fresh_values(self, candidate: Candidate, inputs: Tensors) -> list[Tensors]:
        """Values that no step ever had, by builds with other seeds; where these take too long,
        those that are known.
        """
        own = self._checker.own[candidate.variant.name]
        known = [own.values] if own.values else []
        assert candidate.build is not None
        count = self._count_of_fresh(candidate.build, inputs) if known else 0
        fresh: list[Tensors] = []
        try:
            for seed in itertools.islice(self._seeds, count):
                donated = self._checker.stepping.values_of(candidate.variant, seed)
                if not differ(inputs, donated):
                    return known
                fresh.append(donated)
        except Exception:  # what it needs may be there once, or there is no memory
            return known
        gc.collect()  # nobody else does while it is measured
        return fresh or known

    def _count_of_fresh(self, build: Build, inputs: Tensors) -> int:
        size = sum(tensor.nbytes for tensor in inputs)
        most = max(1, min(_FRESH, _MOST_BYTES // max(size, 1)))
        building_s = 2 * build.build_s  # the baseline is built as often
        if most * building_s <= _ALLOWANCE_S + _SHARE * (perf_counter() - self._started):
            return most
        if self._context.number or building_s > _BUILDING_S:
            return 0
        share_s = _BUILDING_S / len(self._context.checked)
        return max(1, min(most, int(share_s / building_s)))

    def _check_draws(self, candidate: Candidate) -> None:
        """Catches random numbers that are drawn once and used again: RefusedError where only the
        first step after the generators were seeded draws anything.
        """
        name = candidate.variant.name
        build = candidate.build
        if name in self._checker.drawing and build is not None and self._draws_once(build):
            raise RefusedError(draws_when_seeded(name))

    def _check_changed(self, candidate: Candidate) -> None:
        """The last step of a block: all values change just before it, and the generators are
        seeded. In a timed block this would take time.
        """
        build = candidate.build
        own = self._own_of(candidate)
        if build is None or own is None or self._context.job.ranks > 1:
            return
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        write, undo = exchange(inputs, own.values)

        def begin() -> None:
            write()
            self._builder.seed()

        many = min(_MOST_BEFORE, int(_MANY_S / max(candidate.step_s, 1e-9)))
        before = self._draw.randint(1, max(1, many))
        clock = self._context.wall_clock
        build = replay.waiting(build, own)
        clock.block(build, before + 1, lead_in=0, interruption=Interruption(before, begin))
        returned = clock.returned
        clock.forget()
        self._check_output(candidate, build, _Block(True, undo, late=True), returned)

    def _draws_once(self, build: Build) -> bool:
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
        self._compare_state(candidate, actual, expected, steps)

    def _compare_state(
        self, candidate: Candidate, actual: _Stepped, expected: _Stepped, steps: int
    ) -> None:
        agreement = agree(
            actual.output,
            expected.output,
            tolerance=actual.tolerance,
            dtypes=actual.dtypes,
            widened=self._checker.stepping.widened.get(candidate.variant.name, 0.0),
        )
        looser = agreement.tolerance * LOOSER ** (steps - 1)
        if steps > _MOST_STATEFUL_STEPS:
            least, times = _MANY_STEPS_ERROR
            looser = max(least, times * agreement.tolerance)
        error = agreement.error
        if agreement.reason and (error is None or error > min(_LOOSEST, looser)):
            reason = timed_step_is_wrong(
                candidate.variant.name, error=error, allowed=agreement.tolerance, change=""
            )
            raise WrongOutputError(reason, error)
        compared = min(steps, _MOST_STATEFUL_STEPS)
        updates = compare_updates(
            actual.before,
            actual.after,
            expected.before,
            expected.after,
            steps=compared,
            tolerance=agreement.tolerance,
            pairs=actual.pairs,
        )
        if updates.reason:
            raise WrongOutputError(updates.reason, updates.error)
        shown = self._shown[candidate.name]
        shown.blocks += 1
        shown.changed += 1
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
        dtypes = self._checker.stepping.dtypes(build)
        known = None if like is None else pairs
        return _Stepped(output, starts, after, build.work.tolerance, dtypes, known)


@dataclass(frozen=True)
class _Stepped:
    """The effects of some steps: their output, and the state before and after them."""

    output: Tensors
    before: Tensors
    after: Tensors
    tolerance: float | None
    dtypes: tuple[str | None, str | None]
    pairs: Pairs | None
