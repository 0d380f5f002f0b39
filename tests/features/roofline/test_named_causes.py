"""The cause that a real run names for steps whose cause is known."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).parent / "known_causes.py"
CAUSES = {
    "large_copy": {"memory"},
    "large_sum": {"memory"},
    "large_product": {"compute"},
    "chain_in_cache": {"cache"},
    "tiny_operations": {"launch"},
    "decided_by_data": {"launch"},
    "mv_in_a_loop": {"cache", "memory", "unexplained"},
    "mv_of_a_transposed_matrix": {"cache", "memory", "unexplained"},
    "strided": {"unexplained"},
    "gather": {"unexplained"},
    "softmax": {"compute", "memory", "page faults", "unexplained"},
    "new_memory": {"memory", "page faults"},
    "python_loop": {"unexplained"},
    "of_another_library": {"unexplained"},
    "waits_for_a_thread": {"waiting"},
    "sleeps": {"waiting"},
}
OF_FUNCTIONS = {
    "loop": {"unknown"},
    "sort": {"unknown"},
    "wait": {"waiting"},
    "small": {"launch"},
}


def measured(what, *flags):
    """The variants of a run, by name."""
    command = [
        sys.executable,
        "-m",
        "gpulab",
        "--run",
        what,
        "--device",
        "cpu",
        "--json",
        "--telemetry",
        "off",
        *flags,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {variant["name"]: variant for variant in json.loads(done.stdout)["runs"][0]["variants"]}


def wrong(variants, causes):
    """Those that have another cause than a right one; where others took the CPU from it, that is
    one.
    """
    wrongly = {}
    for name, right in causes.items():
        cause = variants[name]["cause"]
        others = {"preempted"} if (variants[name]["contention"] or 0.0) >= 0.5 else set()
        if not {cause["bound"], *cause["or_else"]} & (right | others):
            wrongly[name] = cause
    return wrongly


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_step_has_its_cause():
    assert wrong(measured(str(STEPS)), CAUSES) == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_plain_functions_have_causes_by_their_profile():
    assert wrong(measured(f"{STEPS}:{','.join(OF_FUNCTIONS)}", "--time", "1"), OF_FUNCTIONS) == {}
