"""The parts of a step, looked at in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from gpulab.features.what_if.parts import PartsRequest, PartsSeen

_COMMAND = (sys.executable, "-P", "-m", "gpulab.features.what_if.worker")
_LONGEST_S = 300.0


def parts_of(request: PartsRequest) -> PartsSeen:
    """What a step consists of; its `problem` says why nothing is known."""
    environment = dict(os.environ)
    for name, value in request.job.subject.env.items():
        if value is None:
            environment.pop(name, None)
        elif "{folder}" not in value:
            environment[name] = value
    try:
        answer = subprocess.run(
            _COMMAND,
            input=msgspec.json.encode(request),
            capture_output=True,
            timeout=_LONGEST_S,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return PartsSeen(problem=f"its steps have not ended after {_LONGEST_S:.0f} s")
    try:
        return msgspec.json.decode(answer.stdout, type=PartsSeen)
    except msgspec.DecodeError:
        *_, last = answer.stderr.decode(errors="replace").strip().splitlines() or [""]
        ended = f"its process ended with {answer.returncode}"
        return PartsSeen(problem=f"{ended}: {last}" if last else ended)
