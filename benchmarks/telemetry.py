"""What telemetry costs: CPU time of the sampler per second of a run. screen.py measures what it does
to the times of a step (observer).

python benchmarks/telemetry.py [DRIVER]     # the folder of a stand-in libnvidia-ml.so.1,
compiled if missing
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from gpulab.core.events import WorkerReady
from gpulab.core.machine import Device
from gpulab.features.telemetry.process import TelemetryProcess

SECONDS = 20
TESTS = Path(__file__).parents[1] / "tests"
STANDIN = TESTS / "features" / "telemetry" / "standin.c"


def compiled(folder):
    library = Path(folder) / "libnvidia-ml.so.1"
    if not library.exists():
        soname = "-Wl,-soname,libnvidia-ml.so.1"
        command = ["gcc", "-shared", "-fPIC", "-O1", soname, "-o", library, STANDIN]
        subprocess.run(command, check=True)
    return folder


def share(name, gpu, **environment):
    """CPU seconds of the sampler for each second of its life, once it has started."""
    os.environ.update(environment)
    sampler = TelemetryProcess(gpu)
    device = Device(kind="cpu", name="cpu")
    sampler.target(WorkerReady(pid=os.getpid(), device=device, environment={}))
    time.sleep(2)
    process = psutil.Process(sampler._process.pid)
    before, started, count = sum(process.cpu_times()[:2]), time.monotonic(), 0
    sampler.stream.take()
    while time.monotonic() - started < SECONDS:
        time.sleep(0.1)
        count += len(sampler.stream.take()[0])
    spent = sum(process.cpu_times()[:2]) - before
    took = time.monotonic() - started
    sampler.stop()
    print(f"{name}: {spent / took:.2%} of a core, {count / took:.1f} readings a second", flush=True)


def main():
    folder = compiled(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    share("host alone", "on")
    share("host and stand-in GPU", "0", LD_LIBRARY_PATH=str(folder), STANDIN="")


if __name__ == "__main__":
    main()
