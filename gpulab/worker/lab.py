"""What variants are given to build with: the worker's `Lab`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

from gpulab.model.goodput import USEFUL
from gpulab.model.request import Device
from gpulab.model.scenario import ScenarioError
from gpulab.worker.marks import Marks
from gpulab.worker.warden import Where

if TYPE_CHECKING:
    import torch


class SkippedError(Exception):
    """The variant asked to be left out; the message says why."""


class WorkerLab:
    """The `Lab` that variants are given."""

    def __init__(self, device: torch.device, found: Device, where: Where) -> None:
        self.device = device
        self.l2_bytes = found.l2_bytes
        self.memory_bytes = found.memory_bytes
        self.marks = Marks(device)
        self._where = where
        self.reports: dict[tuple[str | None, str], float] = {}

    def phase(self, name: str) -> AbstractContextManager[Any]:
        return self.marks.phase(name)

    def useful(self) -> AbstractContextManager[Any]:
        return self.marks.phase(USEFUL)

    def report(self, name: str, value: float) -> None:
        """Kept until the end: a message from inside a timed step would be timed."""
        try:
            self.reports[self._where.variant, name] = float(value)
        except (TypeError, ValueError):
            raise ScenarioError(f"lab.report({name!r}, {value!r}): a figure is a number") from None

    def skip(self, why: str) -> NoReturn:
        raise SkippedError(why)
