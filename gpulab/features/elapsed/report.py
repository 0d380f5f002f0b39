"""Whether what blocks claim to take is what passed.

From the end of the block before to its own end pass a block, its untimed first steps, and little
else: restoring the state, whose time is known, and what the lab does. Whoever makes the times of a
variant shorter without making it faster leaves the rest there.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gpulab.core.events import Calibrated, Event, Examined, Samples
from gpulab.core.statuses import CheckKind, Clock
from gpulab.features.elapsed.findings import clock_of_device_stands, time_outside_of_blocks
from gpulab.report.feature import Draft, Feature
from gpulab.report.state import RunState, VariantState
from gpulab.stats.statistics import FEWEST

_MOST_BLOCKS = 2000
"""The latest of each variant."""
_OF_STEP = 0.25
_OF_SAVED = 0.5
"""Time that is hidden, as a part of a step and of what a step saves. In recordings of honest runs
at most 0.2 of both: on a GPU, of steps of a millisecond.
"""


class _Block(NamedTuple):
    """Seconds per step that a block of so many claims, and that passed beside all of it."""

    time_s: float
    steps: int
    beside_s: float


class _LastBlock(NamedTuple):
    epoch: int
    round: int
    name: str
    ended: float


def _latest() -> deque[_Block]:
    return deque(maxlen=_MOST_BLOCKS)


@dataclass
class ElapsedTimes:
    """The blocks of each variant that another one of the same round came before."""

    blocks: defaultdict[str, deque[_Block]] = field(default_factory=lambda: defaultdict(_latest))
    _last: _LastBlock | None = None

    def add(self, event: Samples) -> None:
        rows = zip(
            event.epoch,
            event.round,
            event.variant,
            event.times_s,
            event.ended,
            event.steps,
            strict=True,
        )
        for epoch, number, index, time_s, ended, steps in rows:
            name = event.names[index]
            last = self._last
            self._last = _LastBlock(epoch, number, name, ended)
            if last is None or last.epoch != epoch or (last.round != number and last.name != name):
                continue
            beside_s = ended - last.ended - time_s * steps
            self.blocks[name].append(_Block(time_s, steps, beside_s))


def _fold(state: RunState, event: Samples) -> None:
    state.part(ElapsedTimes).add(event)


def _judge(draft: Draft) -> Iterator[Event]:
    state = draft.state
    if draft.under_way or state.timed_job is None:
        return
    for variant in state.variants.values():
        against = state.variants.get(variant.info.against or "")
        if against is None:
            continue
        if state.timed_job.clock == Clock.WALL:
            yield from _examined(state, variant, against)
        else:
            yield Examined(
                variant=variant.name, check=CheckKind.ELAPSED, skipped=clock_of_device_stands()
            )


def _examined(state: RunState, variant: VariantState, against: VariantState) -> Iterator[Examined]:
    own = _Steps.of(variant, state)
    other = _Steps.of(against, state)
    if own is None or other is None:
        return
    saved_s = other.claimed_s - own.claimed_s
    # noise makes neither end of it larger
    hidden_s = _quantile(own.beside_s, 0.25) - _quantile(other.beside_s, 0.75)
    reason = None
    if saved_s > 0 and hidden_s > max(_OF_STEP * own.claimed_s, _OF_SAVED * saved_s):
        reason = time_outside_of_blocks(
            variant.name,
            claimed_s=own.claimed_s * variant.items,
            saved_s=saved_s * variant.items,
            hidden_s=hidden_s * variant.items,
            against=against.name,
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


@dataclass(frozen=True)
class _Steps:
    """Seconds per item: what its blocks claim, and what passed beside each that is not known."""

    claimed_s: float
    beside_s: list[float]

    @classmethod
    def of(cls, variant: VariantState, state: RunState) -> _Steps | None:
        """None of fewer blocks than an interval needs, and where it is not known what comes before
        them.
        """
        blocks = state.part(ElapsedTimes).blocks[variant.name]
        calibrated = variant.last(Calibrated)
        if len(blocks) < FEWEST or calibrated is None or calibrated.lead_in is None:
            return None
        beside_s = []
        for block in blocks:
            known_s = calibrated.lead_in * block.time_s + calibrated.restore_s
            beside_s.append((block.beside_s - known_s) / block.steps / variant.items)
        claimed_s = _quantile([block.time_s for block in blocks], 0.5) / variant.items
        return cls(claimed_s, beside_s)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


ELAPSED = Feature("elapsed", folds={Samples: _fold}, judge=_judge)
