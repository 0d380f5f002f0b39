"""What of the options of a run this machine can do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gpulab.catalog.needs import default_device, missing
from gpulab.catalog.source import is_there
from gpulab.core.findings import Finding
from gpulab.core.limits import TELEMETRY_OFF, TELEMETRY_ON
from gpulab.features import needed
from gpulab.options import Options, UsageError
from gpulab.report.sentences import sentence


def telemetry_of(options: Options) -> str:
    """Return whether to sample, and what."""
    return options.telemetry or (TELEMETRY_OFF if options.quick else TELEMETRY_ON)


def check_machine(options: Options) -> None:
    """UsageError where no run can be made with these, whatever the scenario."""
    device_of(options)
    cores = len(os.sched_getaffinity(0))
    if options.threads > cores:
        raise UsageError(f"{options.threads} threads: this process may use {cores} cores")


def check_counters(options: Options, device: str | None = None, ranks: int = 1) -> list[Finding]:
    """Return why there will be none of the counters that are asked for, by default on the device of
    a run. UsageError where what reads them is not installed.
    """
    if options.ncu is None and options.counters is None:
        return []
    device = device or device_of(options)
    reasons: list[Finding | None] = []
    if options.ncu is not None:
        reasons.append(needed("counters.tool").why_not(device, ranks))
    if options.counters is not None:
        _, reason = needed("counters_in_time.after").probe(device)
        reasons.append(reason)
    found = [reason for reason in reasons if reason is not None]
    for reason in found:
        if reason.code == "counters_need_package" or reason.values.get("reason") == "ncu_missing":
            raise UsageError(sentence(reason))
    return found


def check_paths(paths: Sequence[Path], flag: str = "") -> None:
    """UsageError where a file or folder to list is not there."""
    for path in paths:
        if not is_there(path):
            raise UsageError(f"{flag}{path}: there is no such file or folder")


def device_of(options: Options) -> str:
    """The device of a run: cpu or cuda:N. UsageError where the machine has no such device."""
    device = options.device
    if device is None:
        return default_device()
    if device != "cpu" and (reason := missing("cuda")):
        raise UsageError(f"{device} is not available here (cpu is)", reason)
    return "cuda:0" if device == "cuda" else device
