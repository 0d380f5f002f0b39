"""What was read of scenario files, kept by the digest of each text: to parse all of them takes a
sixth of every start.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path

from gpulab import scenario
from gpulab.catalog import reader
from gpulab.catalog.reader import ScenarioText, read_text
from gpulab.core.files import write_whole

_READERS = scenario, reader
"""Modules on whose text it depends what is kept."""


class KeptTexts:
    """The texts of a list of scenarios, most of which were read before."""

    def __init__(self) -> None:
        self._before: dict[str, ScenarioText] = {}
        self._now: dict[str, ScenarioText] = {}
        self._reader = tuple(Path(module.__file__ or "").stat().st_mtime_ns for module in _READERS)
        # what another version kept may fail in any way: then all are read again
        with suppress(Exception):
            reader, texts = pickle.loads(_file().read_bytes())
            if reader == self._reader:
                self._before = texts

    def read(self, digest: str, source: str) -> ScenarioText:
        """Return what the text of a file says. UnreadableError as `read_text`."""
        self._now[digest] = self._before.get(digest) or read_text(source)
        return self._now[digest]

    def keep(self) -> None:
        """Keep what was read, where any of it is new."""
        if self._now.keys() <= self._before.keys():
            return
        with suppress(OSError, RuntimeError):
            _file().parent.mkdir(parents=True, exist_ok=True)
            write_whole(_file(), pickle.dumps((self._reader, self._now)))


def _file() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("gpulab") / "scenarios.pickle"
