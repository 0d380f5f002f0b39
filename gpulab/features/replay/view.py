"""The line that says of a replay how far it is, and what was recorded."""

from __future__ import annotations

from gpulab.report.report import RunReport


def made_on(report: RunReport) -> str:
    """The device, the versions and the day of a run."""
    return " · ".join(_facts(report, "torch", "driver", "gpulab"))


def _facts(report: RunReport, *names: str) -> list[str]:
    device = report.device
    parts = [device.name if device else "no device"]
    versions = [(name, report.environment.get(name)) for name in names]
    parts += [f"{name} {version}" for name, version in versions if version]
    return [*parts, report.at.partition("T")[0]]
