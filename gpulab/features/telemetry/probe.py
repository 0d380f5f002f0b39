"""`python -m gpulab.features.telemetry.probe`: what the driver reports of itself, as one JSON
object on stdout.
"""

from __future__ import annotations

import sys

import msgspec

from gpulab.core.finding import finding
from gpulab.core.machine import DriverProbe


def main() -> None:
    try:
        import pynvml

        from gpulab.features.telemetry.gpu import NO_DRIVER, NoGpuError, call, connect
    except ImportError as error:
        answer = DriverProbe(problem=finding("nvml_client_broken", message=str(error)))
    else:
        try:
            connect()
            devices = []
            for index in range(call(pynvml.nvmlDeviceGetCount)):
                handle = call(pynvml.nvmlDeviceGetHandleByIndex, index)
                name, uuid = (
                    call(pynvml.nvmlDeviceGetName, handle),
                    call(pynvml.nvmlDeviceGetUUID, handle),
                )
                devices.append(f"{name} ({uuid})")
            version = call(pynvml.nvmlSystemGetDriverVersion)
            answer = DriverProbe(version=version, devices=tuple(devices))
        except NoGpuError as error:
            answer = DriverProbe(problem=error.reason, present=error.reason.code != NO_DRIVER)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
