"""The lab's command line, as benchmarks start it."""

import json
import subprocess
import sys

GPULAB = (sys.executable, "-m", "gpulab")


def result_of(name, *flags, env=None):
    """The result of one run, as its JSON."""
    command = [*GPULAB, "--run", str(name), *flags, "--json"]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    )
    return json.loads(done.stdout)["runs"][0]
