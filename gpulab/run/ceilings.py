"""Ceilings kept between runs, under the user's cache directory: they hold for one device in one configuration."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from gpulab.model.events import AnyEvent, CeilingsMeasured, RunEnded, TelemetryStarted, WorkerReady
from gpulab.model.request import Device, RunRequest


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What ceilings depend on. The power limit is in watts, None where nobody read it."""

    gpulab: str | None
    device: str
    driver: str | None
    torch: str | None
    cupy: str | None
    threads: int
    power_limit: float | None = None

    @property
    def path(self) -> Path:
        from platformdirs import user_cache_path

        name = sha256(msgspec.json.encode(self)).hexdigest()[:16]
        return user_cache_path("gpulab") / "ceilings" / f"{name}.json"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the cache."""

    key: Key
    device: Device
    measured: CeilingsMeasured


class CeilingCache:
    """Watches one run: finds what is known of its device, and keeps what the run finds out."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._ready: WorkerReady | None = None
        self._sampled: TelemetryStarted | None = None
        self._measured: CeilingsMeasured | None = None
        """The last word of this run on them; nothing older is told after it."""

    def see(self, event: AnyEvent) -> CeilingsMeasured | None:
        """Take an event in; what is known of the device, as soon as it is clear which one it is."""
        if self._request.ceilings == "none":
            return None
        if isinstance(event, CeilingsMeasured):
            self._measured = event
        elif isinstance(event, WorkerReady):
            self._ready = event
            return self._look_up() if self._request.telemetry == "off" or self._sampled else None
        elif isinstance(event, TelemetryStarted):
            self._sampled = event
            return self._look_up()
        elif isinstance(event, RunEnded):
            self._keep()
        return None

    @property
    def _key(self) -> Key | None:
        ready, sampled = self._ready, self._sampled
        if ready is None:
            return None
        device, installed = ready.device, ready.environment
        same = sampled is not None and device.uuid is not None and sampled.uuid == device.uuid
        return Key(
            gpulab=installed.get("gpulab"),
            device=device.uuid or device.name,
            driver=installed.get("driver"),
            torch=installed.get("torch"),
            cupy=installed.get("cupy-cuda13x") or installed.get("cupy-cuda12x"),
            threads=device.threads,
            power_limit=sampled.limits.get("power") if sampled and same else None,
        )

    def _look_up(self) -> CeilingsMeasured | None:
        """What an earlier run found; of a CPU until this run has its own, since such machines are shared, and drift."""
        if self._key is None or self._measured or self._request.ceilings == "all":
            return None
        kept = load(self._key)
        if kept is None:
            return None
        found = kept.measured
        return CeilingsMeasured(ceilings=found.ceilings, at=found.at, cache_bytes=found.cache_bytes, cached=True)

    def _keep(self) -> None:
        key, ready, found = self._key, self._ready, self._measured
        # What a scenario does to its own process, such as waiting for every launch, is no property of the device.
        if key is None or ready is None or found is None or not found.whole or found.cached or self._request.env:
            return
        with suppress(OSError):  # without a cache they are measured again, that is all
            key.path.parent.mkdir(parents=True, exist_ok=True)
            new = key.path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(Kept(key=key, device=ready.device, measured=found)))
            new.replace(key.path)


def load(key: Key) -> Kept | None:
    """What is kept for a key, the newest of any power limit where nobody read it; None where nothing can be read."""
    paths = key.path.parent.glob("*.json") if key.power_limit is None else [key.path]
    every = [kept for path in paths if (kept := _read(path))]
    found = [kept for kept in every if msgspec.structs.replace(kept.key, power_limit=key.power_limit) == key]
    return max(found, key=lambda kept: kept.measured.at, default=None)


def _read(path: Path) -> Kept | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except (OSError, msgspec.DecodeError):
        return None
