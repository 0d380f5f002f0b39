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
LIMIT_S = 300
"""So much, on a machine that others use: alone it takes some ten seconds."""
FOUND = ("is allowed", "outside of its tensors')", "outside of its tensors')\")")
"""How a problem ends that is the kernel's own: wrong values, or memory that is not its own."""
pytestmark = pytest.mark.timeout(LIMIT_S)
QUICK = ("vector_add", "reduction")
"""Lessons of every test run. The others take seconds each."""
MISTAKES = [(name, spoiled) for name, mistakes in SPOILED.items() for spoiled in mistakes]


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    """Of a lesson, as it is or spoiled. The processes that run tests share what takes a process of
    its own, which takes seconds to start.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @cache
    def results(*options):
        path = folder / f"interpreted-{'-'.join(options)}.jsonl"
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            if not text:
                text = interpreted(options)
                file.write(text)
        lines = [json.loads(line) for line in text.splitlines()]
        assert "failure" not in lines[0], lines[0]["failure"]
        return {(line["lesson"], line.get("spoiled")): line for line in lines}

    def of(name, spoiled=None):
        options = ("--spoiled",) if spoiled else ()
        names = QUICK if name in QUICK else [other for other in SPOILED if other not in QUICK]
        return results(*options, *names)[name, spoiled]

    return of


def interpreted(options):
    """What a process prints; of one that fails the reason, so that not each test starts it
    again.
    """
    command = [sys.executable, Path(__file__).with_name("interpreted.py"), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S - 20, check=False
    )
    if done.returncode == 0:
        return done.stdout
    return json.dumps({"failure": f"{done.returncode}: {done.stderr}"})


def test_every_lesson_is_checked():
    assert sorted(SPOILED) == triton_lessons.names()


@pytest.mark.parametrize(("name", "spoiled"), MISTAKES, ids=map(": ".join, MISTAKES))
def test_a_lesson_has_what_a_mistake_replaces(name, spoiled):
    text, _ = SPOILED[name][spoiled]
    assert text in (triton_lessons.SCENARIOS / f"{name}.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SPOILED if name not in QUICK])
def test_every_kernel_of_a_lesson_computes_what_float64_does(result, name):
    computes_what_float64_does(result(name))


def test_every_kernel_of_quick_lessons_computes_what_float64_does(result):
    for name in QUICK:
        computes_what_float64_does(result(name))


def computes_what_float64_does(found):
    assert found["problems"] == []
    assert found["launched"] == found["kernels"] != []
    assert len(found["cases"]) >= 7


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spoiled"), MISTAKES, ids=map(": ".join, MISTAKES))
def test_a_mistake_in_a_kernel_is_found(result, name, spoiled):
    found = result(name, spoiled)
    assert found["problem"]
    assert found["problem"].endswith(FOUND), found["problem"]
