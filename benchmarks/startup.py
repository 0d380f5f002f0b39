"""What `--help` and `--list` cost, as a ratio to `python -c pass`; and 1,000 scenario files listed.

Where nvitop is installed, its `--help` is timed beside ours.

python benchmarks/startup.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from commands import GPULAB

RUNS = 15
PASS = [sys.executable, "-c", "pass"]


def seconds(command, **options):
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    return time.perf_counter() - started


def against_pass(name, *arguments, **options):
    """The two commands in turn, so that a machine that drifts does so under both."""
    command = [*GPULAB, *arguments]
    seconds(command, **options)
    pairs = [(seconds(command, **options), seconds(PASS)) for _ in range(RUNS)]
    own_s = median(own for own, _ in pairs)
    ratio = median(own / bare for own, bare in pairs)
    print(f"{name}: {own_s * 1e3:.0f} ms, {ratio:.1f} x python -c pass")


def main():
    against_pass("--help", "--help")
    if nvitop := shutil.which("nvitop"):
        pairs = [(seconds([*GPULAB, "--help"]), seconds([nvitop, "--help"])) for _ in range(RUNS)]
        ratio = median(own / other for own, other in pairs)
        print(
            f"nvitop --help: {median(other for _, other in pairs) * 1e3:.0f} ms; ours is "
            f"{ratio:.2f} x that"
        )
    against_pass("--list", "--list")
    example = Path(__file__).parents[1] / "tests" / "catalog" / "example.py"
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1000):
            (Path(folder) / f"copy_{number}.py").write_text(example.read_text())
        environment = {**os.environ, "GPULAB_SCENARIOS": folder}
        against_pass("--list of 1,000 more", "--list", env=environment)


if __name__ == "__main__":
    main()
