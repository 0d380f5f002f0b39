"""What variants receive to build with: the worker's `Lab`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

from gpulab.protocol.device import Device
from gpulab.protocol.finding import finding
from gpulab.protocol.partition import USEFUL
from gpulab.protocol.text import plain
from gpulab.scenario import ScenarioError
from gpulab.worker.building.phases import PhaseRecorder
from gpulab.worker.process.errors import SkippedError
from gpulab.worker.process.position import WorkerPosition

if TYPE_CHECKING:
    import torch


class WorkerLab:
    """The `Lab` of a worker."""

    def __init__(self, device: torch.device, info: Device, position: WorkerPosition) -> None:
        self.device = device
        self.l2_bytes = info.l2_bytes
        self.memory_bytes = info.memory_bytes
        self.phases = PhaseRecorder(device)
        self.figures: dict[tuple[str | None, str], float] = {}
        self._position = position

    def phase(self, name: str) -> AbstractContextManager[Any]:
        return self.phases.phase(name)

    def useful(self) -> AbstractContextManager[Any]:
        return self.phases.phase(USEFUL)

    def report(self, name: str, value: float) -> None:
        """Kept until the end: a message from inside a timed step would be timed."""
        try:
            self.figures[self._position.variant, name] = float(value)
        except (TypeError, ValueError):
            raise ScenarioError(f"lab.report({name!r}, {value!r}): a figure is a number") from None

    def skip(self, reason: str) -> NoReturn:
        raise SkippedError(finding("skipped_by_variant", reason=plain(str(reason))))
