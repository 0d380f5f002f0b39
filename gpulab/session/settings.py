"""What refines a run, whichever face starts it, and what of it no machine can do."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpulab.catalog.needs import default_device, missing
from gpulab.catalog.source import is_there
from gpulab.core.findings import Finding
from gpulab.core.limits import NAME_LENGTH, TELEMETRY_OFF, TELEMETRY_ON, TIME_S
from gpulab.core.text import cut, plain

DEVICE = re.compile(r"cpu|cuda(:[0-9]{1,4})?")


class UsageError(ValueError):
    """The command cannot be carried out as it was given. `reason` says what the machine lacks for
    it.
    """

    def __init__(self, message: str, reason: Finding | None = None) -> None:
        super().__init__(plain(message))  # it quotes what was given, which may hold anything
        self.reason = reason


@dataclass(frozen=True)
class Settings:
    """Named as the command line names them; seconds."""

    device: str | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    """Parameters by name, as text."""
    threads: int = 1
    ranks: int = 0
    """Of a calibration: processes whose links are measured."""
    time_s: float | None = None
    width: float | None = None
    """The relative half-width of every interval at which a run stops."""
    required_speedup: float | None = None
    required_speedups: dict[str, float] = field(default_factory=dict)
    """Of some variants, in its place."""
    """What every comparison must reach."""
    from_start: int | None = None
    """The steps of a whole job, from the start of its process; 0: those of a minute."""
    seed: int | None = None
    """None: fresh entropy in every process."""
    smoke: bool = False
    timeout_s: float | None = None
    telemetry: str | None = None
    """on, off, or the index or UUID of a GPU; None: on, but off in a quick run."""
    quick: bool = False
    share: Path | None = None
    """The folder of run files that have no name of their own, for others to watch."""
    profile: str | None = None
    """on, off, or all for every variant; None: on, and of several runs of the same in the first."""
    retune: bool = False
    """Whether what `gpulab.tune` chose in an earlier run is measured again."""
    trace: Path | None = None
    memory: bool = False
    arguments: str | None = None
    """FILE:function that makes the arguments of plain functions; without FILE, one of their own
    file.
    """


def telemetry_of(settings: Settings) -> str:
    """Whether to sample, and what."""
    return settings.telemetry or (TELEMETRY_OFF if settings.quick else TELEMETRY_ON)


def check_settings(settings: Settings) -> None:
    """UsageError where no run can be made with these, whatever the scenario."""
    device_of(settings)
    time_s = settings.time_s  # which the screen asks for, too
    if time_s is not None and not 0 < time_s <= TIME_S:
        raise UsageError(f"--time {time_s:g}: write seconds above 0, and at most {TIME_S:.0f}")
    cores = len(os.sched_getaffinity(0))
    if settings.threads > cores:
        raise UsageError(f"{settings.threads} threads: this process may use {cores} cores")


def check_paths(paths: Sequence[Path], flag: str = "") -> None:
    """UsageError where a file or folder to list is not there."""
    for path in paths:
        if not is_there(path):
            raise UsageError(f"{flag}{path}: there is no such file or folder")


def device_of(settings: Settings) -> str:
    """The device of a run: cpu or cuda:N. UsageError where the machine has no such device."""
    device = settings.device
    if device is None:
        return default_device()
    if not DEVICE.fullmatch(device):
        raise UsageError(f"--device {cut(device, NAME_LENGTH)}: write cpu, cuda or cuda:N")
    if device != "cpu" and (reason := missing("cuda")):
        raise UsageError(f"{device} is not available here (cpu is)", reason)
    return "cuda:0" if device == "cuda" else device
