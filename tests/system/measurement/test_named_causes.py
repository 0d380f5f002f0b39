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
    "strided": {"latency"},
    "gather": {"latency"},
    "softmax": {"compute", "memory", "page faults", "unexplained"},
    "new_memory": {"memory", "page faults"},
    "python_loop": {"interpreter"},
    "of_another_library": {"unexplained"},
    "waits_for_a_thread": {"waiting"},
    "sleeps": {"waiting"},
}
OF_FUNCTIONS = {"loop": {"interpreter"}, "sort": {"unexplained"}, "wait": {"waiting"}, "small": {"launch"}}


def causes(what, *flags):
    """By variant the bounds that a run finds possible: one, where it is sure."""
    command = [sys.executable, "-m", "gpulab", "--run", what, "--device", "cpu", "--json", "--telemetry", "off", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {variant["name"]: variant["cause"] for variant in json.loads(done.stdout)["runs"][0]["variants"]}
    return {name: ({cause["bound"], *cause["or_else"]}, cause["reason"]) for name, cause in found.items()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_step_has_its_cause():
    found = causes(str(STEPS))
    wrong = {name: found[name] for name, right in CAUSES.items() if not found[name][0] & right}
    assert wrong == {}
    assert len(CAUSES) >= 13


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_plain_functions_have_causes_by_their_profile():
    found = causes(f"{STEPS}:{','.join(OF_FUNCTIONS)}", "--time", "1")
    wrong = {name: found[name] for name, right in OF_FUNCTIONS.items() if not found[name][0] & right}
    assert wrong == {}
