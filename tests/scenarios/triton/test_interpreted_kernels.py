"""Kernels in Triton compute what torch does, on odd sizes, in Triton's interpreter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import triton_lessons

pytest.importorskip("triton.language", reason="Triton is not installed", exc_type=ImportError)
LIMIT_S = 300
"""So much, on a machine that others use: alone it takes some ten seconds."""
pytestmark = pytest.mark.timeout(LIMIT_S)
QUICK = ("vector_add", "reduction")
"""Lessons of every test run. The others take seconds each."""


def test_quick_lessons_compute_what_torch_does():
    compute_what_torch_does(QUICK)


@pytest.mark.slow
def test_all_others_do():
    compute_what_torch_does([name for name in triton_lessons.names() if name not in QUICK])


def compute_what_torch_does(names):
    command = [sys.executable, Path(__file__).with_name("interpreted.py"), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S - 20)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["lesson"] for result in results] == list(names)
    for result in results:
        assert result["problems"] == []
        assert result["launched"] == result["kernels"] != []
