"""What refines a run, whichever face starts it, and what of it no machine can do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gpulab.catalog.needs import default_device, missing
from gpulab.catalog.source import is_there
from gpulab.core.files import is_appended_to
from gpulab.core.limits import NAME_LENGTH, TELEMETRY_OFF, TELEMETRY_ON, TIME_S
from gpulab.core.text import cut
from gpulab.core.usage import UsageError as UsageError
from gpulab.flag_values import DEVICE
from gpulab.options import EXCLUSIVE, Options, Settings, flag_of


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


def check_together(options: Options) -> None:
    """UsageError where two options exclude each other, or name one file to be written."""
    for name, others in EXCLUSIVE.items():
        for other in others:
            if {name, other} <= options.given:
                raise UsageError(f"{flag_of(name)} and {flag_of(other)}: one or the other")
    files: dict[str, str] = {}
    for name in ("output", "json", "junit", "plot", "export", "trace", "keep"):
        value = options.json_file if name == "json" else getattr(options, name)
        try:
            if not isinstance(value, Path) or is_appended_to(value):
                continue
        except OSError:  # who writes it says why not
            continue
        first = files.setdefault(os.path.realpath(value), flag_of(name))
        if first != flag_of(name):
            raise UsageError(f"{first} and {flag_of(name)} name one file: {value}")
