"""Collects timed blocks and sends them between rounds: raw, complete, at most ten messages a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic

from gpulab.analysis.series import Epoch, EpochSeries, Key
from gpulab.analysis.statistics import Interval
from gpulab.worker.process.channel import Channel
from gpulab.worker.process.sample_buffer import Block, SampleBuffer

_EVERY_S = 0.1


class Recorder:
    """The worker's own view of the samples: what the stop rule reads is what is sent. `items` are per step."""

    def __init__(self, channel: Channel, buffer: SampleBuffer, items: Mapping[str, float], keys: Iterable[Key]) -> None:
        self._series = EpochSeries(keys)
        self._channel, self._buffer, self._items = channel, buffer, items
        self._rounds: list[dict[str, float]] = []
        self._sent_at = monotonic()

    @property
    def epochs(self) -> int:
        """Epochs that have ended."""
        return self._series.epochs

    def add(self, number: int, name: str, block: Block) -> None:
        """One block of round `number` of the current epoch."""
        while len(self._rounds) <= number:
            self._rounds.append({})
        self._rounds[number][name] = block.time_s / self._items[name]
        if self._buffer.full:
            self.send()
        self._buffer.add(self.epochs, number, name, block)

    def pump(self) -> None:
        """Send what is due. Call it where nothing is being timed."""
        if len(self._buffer) and monotonic() - self._sent_at >= _EVERY_S:
            self.send()
        self._channel.pump()

    def end_epoch(self) -> None:
        self._series.add(Epoch(self._rounds))
        self._rounds = []
        self._buffer.complete(self.epochs)
        self.pump()

    def interval(self, key: Key, *, expensive: bool) -> Interval | None:
        """Of a time in seconds per item, or of a log-ratio; the epoch under way counts too."""
        opened = [Epoch(self._rounds).values(key)] if self._rounds else []
        return self._series[key].interval(opened, expensive=expensive)

    def send(self) -> None:
        """Send all rows now."""
        self._channel.emit(self._buffer.take())
        self._sent_at = monotonic()
