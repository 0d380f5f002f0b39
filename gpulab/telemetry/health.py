"""The health of a device, read once for each run: what is not as it should be is said."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pynvml


def health(handle: Any) -> tuple[dict[str, float], list[str]]:
    """(what was read, what is wrong); what the device does not report is left out."""
    asked: dict[str, Callable[[], float]] = {
        "ecc_uncorrected": lambda: pynvml.nvmlDeviceGetTotalEccErrors(
            handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        ),
        "pcie_generation": lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_generation_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
        "pcie_width": lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        "pcie_width_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
        "pcie_replays": lambda: pynvml.nvmlDeviceGetPcieReplayCounter(handle),
    }
    found: dict[str, float] = {}
    for name, ask in asked.items():
        with suppress(pynvml.NVMLError, AttributeError):
            found[name] = float(ask())
    with suppress(pynvml.NVMLError, AttributeError):
        corrected, uncorrected, pending, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
        found |= {"rows_corrected": corrected, "rows_uncorrected": uncorrected}
        found |= {"rows_pending": float(bool(pending)), "rows_failed": float(bool(failed))}
    return found, _wrong(found)


class Xids:
    """Errors that the driver reports of the device (Xid) as they come; silent where it reports none."""

    def __init__(self, handle: Any) -> None:
        self._set: Any = None
        with suppress(pynvml.NVMLError, AttributeError):
            made = pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, made)
            self._set = made

    def seen(self) -> list[str]:
        """Those since the last call; it never waits."""
        found: list[str] = []
        while self._set is not None:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except (pynvml.NVMLError, AttributeError):
                break  # a timeout: nothing more came
            found.append(f"the driver reported Xid {event.eventData}: the kernel's log (dmesg) says more")
        return found


def _wrong(found: dict[str, float]) -> list[str]:
    said = []
    if found.get("ecc_uncorrected"):
        said.append(f"{found['ecc_uncorrected']:.0f} uncorrected memory errors (ECC) since the driver was loaded")
    if found.get("rows_failed"):
        said.append("a remapping of memory rows failed: the device wants replacing")
    if found.get("rows_pending"):
        said.append("memory rows wait for a reset to be remapped")
    # The generation drops to save power and comes back under load; a link that is narrow stays so.
    width, most = found.get("pcie_width"), found.get("pcie_width_max")
    if width and most and width < most:
        said.append(f"PCIe width {width:.0f} of {most:.0f}: copies from and to the host are slower than they could be")
    return said
