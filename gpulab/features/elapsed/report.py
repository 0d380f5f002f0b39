"""Whether what blocks claim to take is what passed.

From the end of the block before to its own end pass a block, its untimed first steps, and little
else: restoring the state, whose time is known, and what the lab does. Whoever makes the times of a
variant shorter without making it faster leaves the rest there. And whoever does so in
the rounds alone saves nothing in the blocks of the checks.

What passes behind a block is not held against it: outputs are compared there, which on an H100 took
3 ms for those of one variant and 1 ms for those of the other.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp
from typing import NamedTuple

from gpulab.core.events import Calibrated, Event, Examined, Samples
from gpulab.core.findings import Finding
from gpulab.core.statuses import CheckKind, Clock
from gpulab.features.elapsed.findings import (
    block_of_other_steps,
    clock_of_device_stands,
    saved_in_rounds_alone,
    time_outside_of_blocks,
)
from gpulab.report.feature import Draft, Feature
from gpulab.report.state import RunState, VariantState
from gpulab.stats.statistics import FEWEST

_MOST_BLOCKS = 2000
"""The latest of each variant."""
_LEAST_SAVED = 0.02
"""Of a step of the baseline: who saves less has no use for a forged time."""
_OF_STEP = 0.25
_OF_SAVED = 0.5
"""Time that is hidden, as a part of a step and of what a step saves. In recordings of honest runs
at most 0.2 of both: on a GPU, of steps of a millisecond.
"""
_LONGER_LEAD_IN = 1.25
"""Untimed steps take about as long for all variants."""
_LEAST_RATIO = 1.25
_CERTAIN_RATIO = 1.05
_CONFIRMED = 0.25
_FEWEST_LOOKS = 3
"""A smaller speedup, or one whose interval begins lower, is not held against the blocks of the
checks. Of what it saves in the rounds these show this part at least, in more than a quarter of the
processes.
"""


class _Block(NamedTuple):
    """Seconds per step that a block of so many claims, and that passed beside all of it."""

    time_s: float
    steps: int
    beside_s: float


def _some() -> deque[float]:
    return deque(maxlen=_MOST_BLOCKS)


@dataclass
class ElapsedTimes:
    """Batches are kept as they come, for they are many, and read once, when they are judged."""

    batches: deque[Samples] = field(default_factory=deque)
    ratios: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(_some))
    """Of each variant, its speedups in blocks of the checks."""
    _kept: int = 0
    _blocks: dict[str, list[_Block]] | None = None

    def add(self, event: Samples) -> None:
        self._blocks = None
        self.batches.append(event)
        self._kept += len(event.ended)
        oldest = self.batches[0]
        while self._kept - len(oldest.ended) > _MOST_BLOCKS * len(event.names):
            self._kept -= len(oldest.ended)
            self.batches.popleft()
            oldest = self.batches[0]

    @property
    def blocks(self) -> dict[str, list[_Block]]:
        """The latest ones of each variant that another one of the same round came before."""
        if self._blocks is None:
            self._blocks = self._read()
        return self._blocks

    def _read(self) -> dict[str, list[_Block]]:
        blocks: defaultdict[str, list[_Block]] = defaultdict(list)
        before: tuple[int, int, str, float] | None = None
        for event in self.batches:
            for epoch, number, index, time_s, ended, steps in event.blocks():
                name = event.names[index]
                # What the lab does behind a block of the same variant is as long as its outputs are
                if before and before[:2] == (epoch, number) and before[2] != name:
                    beside_s = ended - before[3] - time_s * steps
                    blocks[name].append(_Block(time_s, steps, beside_s))
                before = epoch, number, name, ended
        return blocks


def _fold(state: RunState, event: Samples) -> None:
    state.part(ElapsedTimes).add(event)


def _fold_examined(state: RunState, event: Examined) -> None:
    ratio = event.values.get("block_ratio")
    if event.check == CheckKind.TIMED_STEPS and isinstance(ratio, float) and event.variant:
        state.part(ElapsedTimes).ratios[event.variant].append(ratio)


def _judge(draft: Draft) -> Iterator[Event]:
    state = draft.state
    if draft.under_way or state.timed_job is None:
        return
    for variant in state.variants.values():
        against = state.variants.get(variant.info.against or "")
        if against is None:
            continue
        if state.timed_job.clock == Clock.WALL:
            yield from _examined(draft, variant, against)
        else:
            yield Examined(
                variant=variant.name, check=CheckKind.ELAPSED, skipped=clock_of_device_stands()
            )


def _examined(draft: Draft, variant: VariantState, against: VariantState) -> Iterator[Examined]:
    state = draft.state
    reason = _of_other_steps(variant, state) or _of_other_steps(against, state)
    if reason is not None:
        yield Examined(variant=variant.name, check=CheckKind.ELAPSED, ok=False, reason=reason)
        return
    other = _Steps.of(against, state)
    own = _Steps.of(variant, state, other)
    if own is None or other is None:
        return
    reason = _outside_of_blocks(variant, against, own, other) or _in_rounds_alone(
        variant.name, against.name, draft
    )
    share = max(0.0, _quantile(own.beside_s, 0.5) / own.claimed_s)
    yield Examined(
        variant=variant.name,
        check=CheckKind.ELAPSED,
        ok=reason is None,
        count=len(own.beside_s),
        values={"share": share},
        reason=reason,
    )


def _of_other_steps(variant: VariantState, state: RunState) -> Finding | None:
    """Blocks have as many steps as were calibrated."""
    calibrated = variant.last(Calibrated)
    for block in state.part(ElapsedTimes).blocks.get(variant.name, []):
        if calibrated is not None and block.steps != calibrated.steps_per_block:
            return block_of_other_steps(
                variant.name, steps=block.steps, calibrated=calibrated.steps_per_block
            )
    return None


def _outside_of_blocks(
    variant: VariantState, against: VariantState, own: _Steps, other: _Steps
) -> Finding | None:
    saved_s = other.claimed_s - own.claimed_s
    # noise makes neither end of it larger
    hidden_s = _quantile(own.beside_s, 0.25) - _quantile(other.beside_s, 0.75)
    if saved_s <= _LEAST_SAVED * other.claimed_s:
        return None
    if hidden_s <= max(_OF_STEP * own.claimed_s, _OF_SAVED * saved_s):
        return None
    return time_outside_of_blocks(
        variant.name,
        claimed_s=own.claimed_s * variant.items,
        saved_s=saved_s * variant.items,
        hidden_s=hidden_s * variant.items,
        against=against.name,
    )


def _in_rounds_alone(name: str, against: str, draft: Draft) -> Finding | None:
    """The checks time blocks of both as well, one after the other. A speedup that is not certain is
    held against nothing.
    """
    seen = draft.state.part(ElapsedTimes).ratios[name]
    rounds = draft.samples.interval((name, against))
    if rounds is None or rounds.n < FEWEST or len(seen) < _FEWEST_LOOKS:
        return None
    ratio = exp(-rounds.median)
    most = sorted(seen)[-1 - len(seen) // 4]
    if ratio < _LEAST_RATIO or exp(-rounds.high) < _CERTAIN_RATIO:
        return None
    if 1 - 1 / most >= _CONFIRMED * (1 - 1 / ratio):
        return None
    return saved_in_rounds_alone(name, ratio=ratio, checked=most)


@dataclass(frozen=True)
class _Steps:
    """Seconds per item: what its blocks claim, and what passed beside each that is not known."""

    claimed_s: float
    beside_s: list[float]
    lead_in_s: float
    """Of the untimed steps before a block."""

    @classmethod
    def of(
        cls, variant: VariantState, state: RunState, other: _Steps | None = None
    ) -> _Steps | None:
        """None of fewer blocks than an interval needs, and where it is not known what comes before
        them. `other`: of what has about as long untimed steps.
        """
        blocks = state.part(ElapsedTimes).blocks.get(variant.name, [])
        calibrated = variant.last(Calibrated)
        if len(blocks) < FEWEST or calibrated is None or calibrated.lead_in is None:
            return None
        step_s = _quantile([block.time_s for block in blocks], 0.5)
        lead_in = float(calibrated.lead_in)
        if other is not None:
            lead_in = min(lead_in, 1 + _LONGER_LEAD_IN * other.lead_in_s / step_s)
        beside_s = []
        for block in blocks:
            known_s = lead_in * block.time_s + calibrated.restore_s
            beside_s.append((block.beside_s - known_s) / block.steps / variant.items)
        return cls(step_s / variant.items, beside_s, lead_in * step_s)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


ELAPSED = Feature("elapsed", folds={Samples: _fold, Examined: _fold_examined}, judge=_judge)
