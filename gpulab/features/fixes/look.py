"""One step of a program, looked at in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from gpulab.features.fixes.facts import StepFacts, StepRequest

_COMMAND = (sys.executable, "-P", "-m", "gpulab.features.fixes.worker")
_LONGEST_S = 300.0


def facts_of(request: StepRequest) -> StepFacts:
    """What a step does; its `problem` says why nothing is known."""
    command = [*_COMMAND, msgspec.json.encode(request).decode()]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return StepFacts(problem=f"the step has not ended after {_LONGEST_S:.0f} s")
    try:
        return msgspec.json.decode(answer.stdout, type=StepFacts)
    except msgspec.DecodeError:
        *_, last = answer.stderr.decode(errors="replace").strip().splitlines() or [""]
        ended = f"its process ended with {answer.returncode}"
        return StepFacts(problem=f"{ended}: {last}" if last else ended)
