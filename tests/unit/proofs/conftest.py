"""What is tested here stands beside what it proves: benchmarks, and the checks that a GPU must pass."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path += [str(TESTS / "benchmarks"), str(TESTS / "gpu")]
