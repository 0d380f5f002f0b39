"""`python -m gpulab.worker.probe`: what torch makes of this machine, as one JSON object on stdout."""

from __future__ import annotations

import os

import msgspec

from gpulab.model.machine import Probe


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever libraries print is not the answer
    try:
        found = _look()
    except Exception as error:
        found = Probe(error=f"{type(error).__name__}: {error}")
    os.write(answers, msgspec.json.encode(found))


def _look() -> Probe:
    import torch

    from gpulab.worker.device import find

    _, cpu = find("cpu", 1)
    devices, capabilities, why = [cpu], [torch.backends.cpu.get_cpu_capability()], None
    try:
        if torch.version.cuda:
            torch.cuda.init()  # type: ignore[no-untyped-call]
        for index in range(torch.cuda.device_count()):
            device, found = find(f"cuda:{index}", 1)
            torch.ones(1, device=device).add_(1).item()  # a device may be listed and yet not work
            devices.append(found)
            capabilities.append(".".join(map(str, torch.cuda.get_device_capability(device))))
    except Exception as error:
        why = str(error).partition("\n")[0]
    return Probe(
        torch=str(torch.__version__),
        cuda=torch.version.cuda,
        devices=tuple(devices),
        capabilities=tuple(capabilities),
        cuda_error=why,
    )


if __name__ == "__main__":
    main()
