"""Collects timed blocks and ships them between rounds: raw, complete, at most ten messages a second."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from gpulab.model.compare import Epoch
from gpulab.worker.channel import Channel
from gpulab.worker.ledger import Block, Ledger

_EVERY_S = 0.1


class Recorder:
    """The worker's own view of the samples: what the stop rule reads is what is sent. `items` are per step."""

    def __init__(self, channel: Channel, ledger: Ledger, items: Mapping[str, float]) -> None:
        self.epochs: list[Epoch] = []
        self._channel, self._ledger, self._items = channel, ledger, items
        self._rounds: list[dict[str, float]] = []
        self._shipped = monotonic()

    def add(self, number: int, name: str, block: Block) -> None:
        """One block of round `number` of the current epoch."""
        while len(self._rounds) <= number:
            self._rounds.append({})
        self._rounds[number][name] = block.time_s / self._items[name]
        if self._ledger.full:
            self.ship()
        self._ledger.add(len(self.epochs), number, name, block)

    def pump(self) -> None:
        """Ship what is due. Call it where nothing is being timed."""
        if len(self._ledger) and monotonic() - self._shipped >= _EVERY_S:
            self.ship()
        self._channel.pump()

    def end_epoch(self) -> None:
        self.epochs.append(Epoch(tuple(self._rounds)))
        self._rounds = []
        self._ledger.complete(len(self.epochs))
        self.pump()

    def current(self) -> list[Epoch]:
        """Ended epochs and the one under way."""
        return [*self.epochs, Epoch(tuple(self._rounds))] if self._rounds else self.epochs

    def ship(self) -> None:
        """Send all rows now."""
        self._channel.emit(self._ledger.take())
        self._shipped = monotonic()
