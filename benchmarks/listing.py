"""What listing a folder of 1,000 scenario files costs, in seconds: each run is a process of its
own.

python benchmarks/listing.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

FILES, RUNS = 1000, 7
EXAMPLE = Path(__file__).parents[1] / "tests" / "unit" / "catalog" / "example.py"


def main():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(FILES):
            (Path(folder) / f"copy_{number}.py").write_text(EXAMPLE.read_text())
        command = [sys.executable, "-m", "gpulab", "--list", folder]
        times = []
        for _ in range(RUNS):
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - started)
    print(
        f"gpulab --list of {FILES:,} files: {min(times):.2f} s at best, {median(times):.2f} s in "
        "the middle"
    )


if __name__ == "__main__":
    main()
