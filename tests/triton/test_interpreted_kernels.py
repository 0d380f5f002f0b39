"""Kernels in Triton compute what float64 does, on odd sizes, in Triton's interpreter; and spoiled
ones do not.
"""

import fcntl
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import triton_lessons
from spoiled_kernels import SPOILED

pytest.importorskip("triton.language", reason="Triton is not installed", exc_type=ImportError)
PROCESSES = (
    ("vector_add", "fused_softmax", "layernorm_gelu", "reduction", "small_kernels", "utilization"),
    ("triton_matmul", "persistent_matmul", "attention"),
)
"""Lessons that are checked by one process: it takes seconds to start."""
LIMIT_S = 300
"""So much, on a machine that others use: alone it takes some ten seconds."""
FOUND = ("is allowed", "outside of its tensors')", "outside of its tensors')\")")
"""How a problem ends that is the kernel's own: wrong values, or memory that is not its own."""
pytestmark = pytest.mark.timeout(LIMIT_S)
MISTAKES = [(name, spoiled) for name, mistakes in SPOILED.items() for spoiled in mistakes]


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    """Of a lesson, as it is or spoiled. The processes that run tests share what takes a process of
    its own.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @cache
    def results(lessons):
        path = folder / f"interpreted_{lessons[0]}.jsonl"
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = [
                json.loads(line) for line in file.read().splitlines() or interpreted(lessons, file)
            ]
        assert "failure" not in lines[0], lines[0]["failure"]
        return {(line["lesson"], line.get("spoiled")): line for line in lines}

    return lambda name, spoiled=None: next(
        results(of)[name, spoiled] for of in PROCESSES if name in of
    )


def interpreted(lessons, file):
    """The lines of a process; of one that fails the reason, so that not each test starts it
    again.
    """
    command = [sys.executable, Path(__file__).with_name("interpreted.py"), *lessons]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S - 20, check=False
    )
    text = (
        done.stdout
        if done.returncode == 0
        else json.dumps({"failure": f"{done.returncode}: {done.stderr}"})
    )
    file.write(text)
    return text.splitlines()


def test_every_lesson_is_checked():
    assert (
        sorted(name for lessons in PROCESSES for name in lessons)
        == sorted(SPOILED)
        == triton_lessons.names()
    )


@pytest.mark.parametrize("name", SPOILED)
def test_every_kernel_of_a_lesson_computes_what_float64_does(result, name):
    found = result(name)
    assert found["problems"] == []
    assert found["launched"] == found["kernels"] != []
    assert len(found["cases"]) >= 8


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spoiled"), MISTAKES, ids=map(": ".join, MISTAKES))
def test_a_mistake_in_a_kernel_is_found(result, name, spoiled):
    found = result(name, spoiled)
    assert found["places"] >= 1, f"{name} has no {SPOILED[name][spoiled][0]!r}"
    assert found["problem"]
    assert found["problem"].endswith(FOUND), found["problem"]
