"""The benchmarks are run by hand and seldom: what they import is still there."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
IMPORT_ALL = """
import importlib, sys
from pathlib import Path

for folder in map(Path, sys.argv[1:]):
    sys.path.append(str(folder))
    for path in sorted(folder.glob("*.py")):
        importlib.import_module(path.stem)
"""


def test_every_benchmark_is_imported():
    command = [sys.executable, "-c", IMPORT_ALL, BENCHMARKS, BENCHMARKS / "device"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
