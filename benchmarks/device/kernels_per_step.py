"""Kernel seconds of a lesson's step over its seconds without a profiler, by nothing of the lab but
the lesson's file.

    python benchmarks/device/kernels_per_step.py SCENARIO.py VARIANT [--device cuda:0]

Prints a line of JSON: the union of the kernels of a step as torch.profiler records them, the step's
seconds by torch.utils.benchmark.Timer beforehand, and the share.
"""

import argparse
import importlib.util
import json
import sys
from contextlib import nullcontext
from inspect import isgenerator, signature
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch
from torch.autograd import DeviceType
from torch.utils.benchmark import Timer

STEPS = 50
_NO_KERNELS = ("Memcpy HtoD", "Memcpy DtoH", "Memset")


def built(path, variant, device, *, smoke=False):
    """The work of a variant, with the parameters of its file."""
    spec = importlib.util.spec_from_file_location("lesson", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    scenario = module.scenario
    on_cpu = device.type == "cpu"
    l2_bytes = 32 << 20 if on_cpu else torch.cuda.get_device_properties(device).L2_cache_size
    silent = {
        "phase": lambda name: nullcontext(),
        "useful": nullcontext,
        "report": lambda name, value: None,
    }
    sms = 0 if on_cpu else torch.cuda.get_device_properties(device).multi_processor_count
    lab = SimpleNamespace(device=device, l2_bytes=l2_bytes, memory_bytes=0, sms=sms, **silent)
    params = scenario.resolve(on_cpu=on_cpu, smoke=smoke, chosen={})
    torch.manual_seed(0)
    function = scenario.variants[variant].function
    made = function(
        lab,
        **{name: value for name, value in params.items() if name in signature(function).parameters},
    )
    return next(made) if isgenerator(made) else made


def kernel_seconds(events):
    """The union of what runs on the device but copies from and to the host: what runs at the same
    time counts once.
    """
    spans = sorted(
        (event.time_range.start, event.time_range.end)
        for event in events
        if event.device_type == DeviceType.CUDA and not event.name.startswith(_NO_KERNELS)
    )
    total, reached = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total * 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("variant")
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    step = built(options.path, options.variant, torch.device(options.device)).step
    plain_s = Timer("step()", globals={"step": step}).blocked_autorange(min_run_time=1.0).median
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as recording:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    kernels_s = kernel_seconds(recording.events()) / STEPS
    print(json.dumps({"kernels_s": kernels_s, "plain_s": plain_s, "share": kernels_s / plain_s}))


if __name__ == "__main__":
    main()
