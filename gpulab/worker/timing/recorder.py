"""Collects timed blocks and sends them between rounds: raw, complete, at most ten messages a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic

from gpulab.analysis.series import Epoch, Key
from gpulab.worker.process.channel import Channel
from gpulab.worker.process.sample_buffer import Block, SampleBuffer

_EVERY_S = 0.1


class Recorder:
    """The epochs of one process, from number `first` on; `items` are per step."""

    def __init__(
        self, channel: Channel, buffer: SampleBuffer, items: Mapping[str, float], keys: Iterable[Key], first: int
    ) -> None:
        self._channel, self._buffer, self._items = channel, buffer, items
        self._keys = list(keys)
        self.epochs = first
        """Of the run, that have ended."""
        self.values: list[tuple[Key, list[list[float]]]] = [(key, []) for key in self._keys]
        """Of each quantity, its values in every epoch of this process."""
        self._rounds: list[dict[str, float]] = []
        self._sent_at = monotonic()

    def add(self, number: int, name: str, block: Block) -> None:
        """One block of round `number` of the current epoch."""
        while len(self._rounds) <= number:
            self._rounds.append({})
        self._rounds[number][name] = block.time_s / self._items[name]
        if self._buffer.full:
            self.send()
        self._buffer.add(self.epochs, number, name, block)

    def last_times(self) -> dict[str, float]:
        """Seconds per step of the blocks of the last round."""
        return {name: time_s * self._items[name] for name, time_s in self._rounds[-1].items()} if self._rounds else {}

    def pump(self) -> None:
        """Send what is due. Call it where nothing is being timed."""
        if len(self._buffer) and monotonic() - self._sent_at >= _EVERY_S:
            self.send()
        self._channel.pump()

    def end_epoch(self) -> None:
        epoch = Epoch(self._rounds)
        for key, values in self.values:
            if epoch_values := epoch.values(key):
                values.append(epoch_values)
        self._rounds = []
        self.epochs += 1
        self._buffer.complete(self.epochs)
        self.pump()

    def send(self) -> None:
        """Send all rows now."""
        self._channel.emit(self._buffer.take())
        self._sent_at = monotonic()
