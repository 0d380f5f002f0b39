"""What variants receive to build with: the worker's `Lab`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import torch

from gpulab.limits import TEXT_LENGTH
from gpulab.protocol.device import Device
from gpulab.protocol.finding import finding
from gpulab.protocol.partition import USEFUL
from gpulab.scenario import Param, ScenarioError, Work
from gpulab.worker.building.load import ANSWER
from gpulab.worker.building.names import Names
from gpulab.worker.building.phases import PhaseRecorder
from gpulab.worker.process.errors import SkippedError
from gpulab.worker.process.exception_text import short, text_of
from gpulab.worker.process.position import WorkerPosition


class Chooser(Protocol):
    """Chooses for `gpulab.tune`; `seconds` is what that has taken so far."""

    seconds: float

    def __call__(self, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]) -> Work: ...


class WorkerLab:
    """The `Lab` of a worker."""

    def __init__(self, device: torch.device, info: Device, position: WorkerPosition) -> None:
        self.device = device
        self.l2_bytes = info.l2_bytes
        self.memory_bytes = info.memory_bytes
        self.sms = info.sms
        self.info = info
        self.generator = torch.Generator(device)
        self.phases = PhaseRecorder(device)
        self.has_tuned = False
        """In the build that is under way."""
        self.tuner: Chooser | None = None
        """What chooses for `gpulab.tune`; set once there is something to measure with."""
        self.figures: dict[tuple[str | None, str], float] = {}
        self._names = Names("lab.report", "tokens/s")
        self._position = position

    def phase(self, name: str) -> AbstractContextManager[Any]:
        return self.phases.phase(name)

    def useful(self) -> AbstractContextManager[Any]:
        return self.phases.phase(USEFUL)

    def report(self, name: str, value: float) -> None:
        """Kept until the end: a message from inside a timed step would be timed."""
        figure = self._names.take(name)
        try:
            number = float(value)
        except Exception:
            raise ScenarioError(f"lab.report({figure!r}, {short(value)}): a figure is a number") from None
        self.figures[self._position.variant, figure] = number

    def attempt(self, name: str) -> Callable[..., Any]:
        function = getattr(sys.modules.get(ANSWER), name, None)
        if not callable(function):
            raise ScenarioError(f"the file has no function {name!r}: that is the one that is judged")
        return function  # type: ignore[no-any-return]

    @property
    def tuning_s(self) -> float:
        """Seconds that choosing has taken so far."""
        return self.tuner.seconds if self.tuner else 0.0

    def tune(self, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]) -> Work:
        if self.has_tuned:
            raise ScenarioError("tune() is called twice: a variant chooses once, among all combinations")
        self.has_tuned = True
        assert self.tuner is not None
        return self.tuner(candidates, make)

    def skip(self, reason: str) -> NoReturn:
        raise SkippedError(finding("skipped_by_variant", reason=text_of(reason, most=TEXT_LENGTH)))
