"""Whether steps take longer when the values of their inputs are new, or when each is waited for: some then replay."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import torch

from gpulab.protocol.finding import finding
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build
from gpulab.worker.building.compiled import mark_step
from gpulab.worker.checking.changes import Everything, LateElement
from gpulab.worker.checking.matching import Matching, identity
from gpulab.worker.process.errors import RefusedError
from gpulab.worker.timing.waiting import wait_for

_ALL_BYTES = 4 << 20
"""Inputs up to this size are written as a whole, larger ones in one element."""
_PAIRS_S, _MOST_PAIRS = 0.01, 5
_RATIO, _LEAST_S = 3.0, 50e-6
"""Times, and seconds, by which a step on new values may take longer than on old ones."""
_LEAST_ALONE_S = 1e-3
"""By which a step may take longer alone than in a block: launches are waited for, and caches were emptied."""


@dataclass
class FreshTimes:
    """Seconds of single steps whose inputs were written anew just before, with new values or with those they had."""

    fresh_s: list[float] = field(default_factory=list)
    same_s: list[float] = field(default_factory=list)
    block_step_s: float = 0.0
    """Of a step in a block, among others that nobody waits for."""

    @property
    def ratio(self) -> float:
        """The shortest on new values over the median on old ones: what is disturbed now and then is no memory."""
        return min(self.fresh_s) / max(median(self.same_s), 1e-9)

    @property
    def ratio_alone(self) -> float:
        """The shortest on old values over one of a block; 1 where little is between them."""
        alone_s = min(self.same_s)
        return alone_s / max(self.block_step_s, 1e-9) if alone_s - self.block_step_s > _LEAST_ALONE_S else 1.0

    @property
    def remembers(self) -> bool:
        return self.ratio > _RATIO and min(self.fresh_s) - median(self.same_s) > _LEAST_S

    @property
    def is_suspicious(self) -> bool:
        return self.remembers or self.ratio_alone > _RATIO


def refuse(variant: str, times: FreshTimes, baseline: FreshTimes) -> None:
    """RefusedError of a variant whose steps take longer where the baseline's do not."""
    if times.remembers and times.ratio > _RATIO * max(1.0, baseline.ratio):
        raise RefusedError(finding("remembers_its_inputs", variant, ratio=times.ratio, baseline=baseline.ratio))
    alone, usual = times.ratio_alone, baseline.ratio_alone
    if alone > _RATIO * usual:
        raise RefusedError(finding("computes_when_waited_for", variant, ratio=alone, baseline=usual))


def pairs_for(step_s: float) -> int:
    """How many pairs of such steps a check can afford."""
    return max(1, min(_MOST_PAIRS, int(_PAIRS_S / max(2 * step_s, 1e-9))))


def time_pairs(
    times: FreshTimes,
    build: Build,
    inputs: Sequence[torch.Tensor],
    matching: Matching,
    pairs: int,
    draw: random.Random,
    wait: Callable[[], None],
) -> None:
    """Add so many pairs of steps; inputs and state are as before afterwards."""
    saved = tensors.kept(inputs)
    scale = 1.0
    try:
        with build.context():
            for _ in range(pairs):
                for seconds, fresh in ((times.same_s, False), (times.fresh_s, True)):
                    scale = draw.uniform(0.5, 0.95) if fresh else scale
                    _write(inputs, saved, matching, scale, draw if fresh else None)
                    mark_step()
                    wait()
                    started = perf_counter()
                    wait_for(build.work.step())
                    wait()
                    seconds.append(perf_counter() - started)
    finally:
        wait()
        tensors.put_back(inputs, saved)
        build.restore()
        wait()


def _write(
    inputs: Sequence[torch.Tensor],
    saved: Sequence[torch.Tensor],
    matching: Matching,
    scale: float,
    draw: random.Random | None,
) -> None:
    """Write new values, or without `draw` as many that are those of the step before."""
    has_floats = any(tensor.is_floating_point() for tensor in inputs)
    if has_floats and sum(tensor.nbytes for tensor in inputs) <= _ALL_BYTES:
        tensors.put_back(inputs, saved)
        Everything(scale).make(inputs, matching)
        return
    own = identity(inputs)
    for index, tensor in enumerate(inputs):
        if tensor.numel() > 1 and tensor.is_floating_point() == has_floats and tensor.dtype != torch.bool:
            place = draw.random() if draw else 1.0
            LateElement(index, place, draw.random() if draw else place).make(inputs, own)
