"""What variants chose with `gpulab.tune`, kept between runs: a file for each source, of many
devices and parameters.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from gpulab.core.events import Event, RunEnded, RunInvalid, Tuned
from gpulab.core.files import read_regular, write_whole
from gpulab.core.jobs import RunRequest, subject_of
from gpulab.core.limits import CACHE_FILE_BYTES
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Outcome
from gpulab.core.wire import UNREADABLE

_MOST = 200
"""Choices of one source; those made last stay."""
_MOST_FILES = 200


class ChoiceCache:
    """Watches one run: what is known for its source, and what it chooses."""

    def __init__(self, request: RunRequest) -> None:
        subject = subject_of(request.job)
        self._source = subject.source_sha256 if subject else ""
        self._new: list[Choice] = []

    def load(self) -> tuple[Choice, ...]:
        """All that earlier runs of this source chose; nothing where that cannot be read: it is then
        chosen anew.
        """
        if not self._source:
            return ()
        try:
            return tuple(
                msgspec.json.decode(read_regular(self._path, CACHE_FILE_BYTES), type=list[Choice])
            )
        except (OSError, *UNREADABLE):
            return ()

    def see(self, event: Event) -> None:
        match event:
            case Tuned(cached=False):
                self._new.append(event.choice)
            case RunInvalid():
                self._new = []
            case RunEnded(outcome=outcome) if outcome != Outcome.FAILED:
                self._save()

    def _save(self) -> None:
        if not self._new:
            return
        keys = {choice.key for choice in self._new}
        kept = [*(choice for choice in self.load() if choice.key not in keys), *self._new][-_MOST:]
        with suppress(OSError):  # without a cache it is chosen again, that is all
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = msgspec.json.encode(kept)
            while len(content) > CACHE_FILE_BYTES and len(kept) > 1:
                kept = kept[len(kept) // 2 :]
                content = msgspec.json.encode(kept)
            write_whole(self._path, content)
            files = sorted(self._path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in files[:-_MOST_FILES]:  # of sources that were edited since
                path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        from platformdirs import user_cache_path

        digest = sha256(self._source.encode())
        return user_cache_path("gpulab") / "choices" / f"{digest.hexdigest()[:16]}.json"
