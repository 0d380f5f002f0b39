"""`python -m gpulab.engine.probe`: what torch makes of this machine, as JSON on stdout."""

from __future__ import annotations

import os

import msgspec

from gpulab.catalog.needs import failed_import_of_torch
from gpulab.core.machine import TorchProbe


def main() -> None:
    stdout = os.dup(1)
    os.dup2(2, 1)  # whatever libraries print is not the answer
    try:
        answer = _probe()
    except (Exception, SystemExit) as error:
        message = f"{type(error).__name__}: {error}"
        answer = TorchProbe(problem=failed_import_of_torch(message))
    os.write(stdout, msgspec.json.encode(answer))


def _probe() -> TorchProbe:
    import torch

    from gpulab.engine.processes.device import open_device
    from gpulab.engine.processes.failure import first_line

    _, cpu = open_device("cpu", 1)
    devices, capabilities, cuda_error = [cpu], [torch.backends.cpu.get_cpu_capability()], None
    try:
        if torch.version.cuda:
            torch.cuda.init()  # type: ignore[no-untyped-call]
        for index in range(torch.cuda.device_count()):
            device, info = open_device(f"cuda:{index}", 1)
            torch.ones(1, device=device).add_(1).item()  # a device may be listed and yet not work
            devices.append(info)
            capabilities.append(".".join(map(str, torch.cuda.get_device_capability(device))))
    except Exception as error:
        cuda_error = first_line(error)
    return TorchProbe(
        torch=str(torch.__version__),
        cuda=torch.version.cuda,
        devices=tuple(devices),
        capabilities=tuple(capabilities),
        cuda_error=cuda_error,
    )


if __name__ == "__main__":
    main()
