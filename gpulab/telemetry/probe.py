"""`python -m gpulab.telemetry.probe`: what the driver reports of itself, as one JSON object on stdout."""

from __future__ import annotations

import sys

import msgspec

from gpulab.protocol.finding import finding
from gpulab.protocol.machine import DriverProbe


def main() -> None:
    try:
        import pynvml

        from gpulab.telemetry import nvml
    except ImportError as error:
        answer = DriverProbe(problem=finding("nvml_client_broken", message=str(error)))
    else:
        try:
            nvml.connect()
            devices = []
            for index in range(nvml.call(pynvml.nvmlDeviceGetCount)):
                handle = nvml.call(pynvml.nvmlDeviceGetHandleByIndex, index)
                name, uuid = nvml.call(pynvml.nvmlDeviceGetName, handle), nvml.call(pynvml.nvmlDeviceGetUUID, handle)
                devices.append(f"{name} ({uuid})")
            version = nvml.call(pynvml.nvmlSystemGetDriverVersion)
            answer = DriverProbe(version=version, devices=tuple(devices))
        except nvml.NoGpuError as error:
            answer = DriverProbe(problem=error.reason, present=error.reason.code != nvml.NO_DRIVER)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
