"""Collects timed blocks and ships them between rounds: raw, complete, at most ten messages a second."""

from __future__ import annotations

from time import monotonic

from gpulab.model.compare import Epoch
from gpulab.model.events import Samples
from gpulab.worker.channel import Channel
from gpulab.worker.clock import Block

_EVERY_S = 0.1


class Recorder:
    """The worker's own view of the samples: what the stop rule reads is what is sent."""

    def __init__(self, channel: Channel, names: tuple[str, ...], items: dict[str, float]) -> None:
        self.epochs: list[Epoch] = []
        self._channel = channel
        self._names = names
        self._index = {name: index for index, name in enumerate(names)}
        self._items = items
        self._rounds: list[dict[str, float]] = []
        self._rows: list[tuple[int, int, int, Block]] = []
        self._shipped = monotonic()

    def add(self, number: int, name: str, block: Block) -> None:
        """One block of round `number` of the current epoch."""
        while len(self._rounds) <= number:
            self._rounds.append({})
        self._rounds[number][name] = block.time_s / self._items[name]
        self._rows.append((len(self.epochs), number, self._index[name], block))

    def pump(self) -> None:
        """Ship what is due. Call it where nothing is being timed."""
        if self._rows and monotonic() - self._shipped >= _EVERY_S:
            self.ship()
        self._channel.pump()

    def end_epoch(self) -> None:
        self.epochs.append(Epoch(tuple(self._rounds)))
        self._rounds = []
        self.pump()

    def current(self) -> list[Epoch]:
        """Ended epochs and the one under way."""
        return [*self.epochs, Epoch(tuple(self._rounds))] if self._rounds else self.epochs

    def ship(self) -> None:
        """Send all rows now."""
        blocks = [row[3] for row in self._rows]
        self._channel.emit(
            Samples(
                names=self._names,
                complete=len(self.epochs),
                epoch=[row[0] for row in self._rows],
                round=[row[1] for row in self._rows],
                variant=[row[2] for row in self._rows],
                times_s=[block.time_s for block in blocks],
                cpu_s=[block.cpu_s for block in blocks],
                faults=[block.faults for block in blocks],
                switches=[block.switches for block in blocks],
            )
        )
        self._rows = []
        self._shipped = monotonic()
