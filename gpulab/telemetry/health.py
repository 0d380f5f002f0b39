"""The health of a device, read once per run: what is not as it should be becomes a finding."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pynvml

from gpulab.protocol.finding import Finding, finding


def health(handle: Any) -> tuple[dict[str, float], list[Finding]]:
    """(what was read, what is wrong); what the device does not report is left out."""
    queries: dict[str, Callable[[], float]] = {
        "ecc_uncorrected": lambda: pynvml.nvmlDeviceGetTotalEccErrors(
            handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        ),
        "pcie_generation": lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_generation_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
        "pcie_width": lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        "pcie_width_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
        "pcie_replays": lambda: pynvml.nvmlDeviceGetPcieReplayCounter(handle),
    }
    values: dict[str, float] = {}
    for name, query in queries.items():
        with suppress(pynvml.NVMLError, AttributeError):
            values[name] = float(query())
    with suppress(pynvml.NVMLError, AttributeError):
        corrected, uncorrected, pending, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
        values |= {"rows_corrected": corrected, "rows_uncorrected": uncorrected}
        values |= {"rows_pending": float(bool(pending)), "rows_failed": float(bool(failed))}
    return values, _problems(values)


class Xids:
    """Errors that the driver reports of the device (Xid) as they come; silent where it reports none."""

    def __init__(self, handle: Any) -> None:
        self._set: Any = None
        with suppress(pynvml.NVMLError, AttributeError):
            event_set = pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, event_set)
            self._set = event_set

    def take(self) -> list[Finding]:
        """Those since the last call; it never waits."""
        reported: list[Finding] = []
        while self._set is not None:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except (pynvml.NVMLError, AttributeError):
                break  # a timeout: nothing more came
            reported.append(finding("xid", xid=int(event.eventData)))
        return reported


def _problems(values: dict[str, float]) -> list[Finding]:
    problems = []
    if errors := values.get("ecc_uncorrected"):
        problems.append(finding("ecc_errors", count=int(errors)))
    if values.get("rows_failed"):
        problems.append(finding("row_remapping_failed"))
    if values.get("rows_pending"):
        problems.append(finding("row_remapping_pending"))
    # The generation drops to save power and comes back under load; a link that is narrow stays so.
    width, full = values.get("pcie_width"), values.get("pcie_width_max")
    if width and full and width < full:
        problems.append(finding("pcie_narrow", width=int(width), full=int(full)))
    return problems
