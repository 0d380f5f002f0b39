"""`python -m gpulab.telemetry.check`: what the driver says of itself, as one JSON object on stdout."""

from __future__ import annotations

import sys

import msgspec

from gpulab.model.machine import DriverCheck


def main() -> None:
    try:
        import pynvml

        from gpulab.telemetry import nvml
    except ImportError as error:
        found = DriverCheck(why=f"nvidia-ml-py cannot be used: {error}")
    else:
        try:
            nvml.connect()
            devices = []
            for index in range(nvml.call(pynvml.nvmlDeviceGetCount)):
                handle = nvml.call(pynvml.nvmlDeviceGetHandleByIndex, index)
                name, uuid = nvml.call(pynvml.nvmlDeviceGetName, handle), nvml.call(pynvml.nvmlDeviceGetUUID, handle)
                devices.append(f"{name} ({uuid})")
            found = DriverCheck(version=nvml.call(pynvml.nvmlSystemGetDriverVersion), devices=tuple(devices))
        except nvml.NoGpuError as error:
            found = DriverCheck(why=str(error), present=not nvml.absent(error))
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
