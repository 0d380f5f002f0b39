"""`python -P -m gpulab.engine.counted_steps [FILE]`: runs some steps of variants, for a profiler
of another program to look at.

It reads a `StepsJob` as one line of JSON from stdin, or from FILE, and writes a `StepsState` as a
line to stdout whenever a variant is ready, done or failed. What the scenario prints goes to stderr.
On a CUDA device the steps of a variant are between cudaProfilerStart and cudaProfilerStop, in an
NVTX range `gpulab:VARIANT`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from time import time_ns
from typing import Any, BinaryIO

import msgspec
import torch

from gpulab.core.counted_steps import StepsJob, StepsState
from gpulab.engine.build import compiled
from gpulab.engine.build.build import Build
from gpulab.engine.measure.context import OpenedJob, open_job
from gpulab.engine.processes.channel import Channel
from gpulab.engine.processes.device import release_memory
from gpulab.engine.processes.failure import VariantError, first_line, forget
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.step_clock import call_each, wait_for
from gpulab.proc.pipes import to_high_number
from gpulab.report.sentences import sentence

_WARM_STEPS = 5


def main() -> None:
    told = os.fdopen(to_high_number(os.dup(0)), "rb")
    answers = os.fdopen(to_high_number(os.dup(1)), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    line = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else told.readline()
    asked = msgspec.json.decode(line, type=StepsJob)
    compiled.keep_code_of_the_run(asked.job)
    channel = Channel(nothing)  # nobody wants the engine's events
    channel.name_variants(asked.job)
    opened: OpenedJob | None = None
    for name in asked.variants:
        try:
            opened = opened or open_job(
                asked.job, asked.choices, Reporter(channel, asked.job, channel.position)
            )
            for state in _variant(opened, asked, name, told):
                answers.write(msgspec.json.encode(state) + b"\n")
        except BaseException as error:
            message = first_line(error)
            if isinstance(error, VariantError):
                message = sentence(error.finding)
            failed = StepsState(variant=name, state="failed", message=message)
            answers.write(msgspec.json.encode(failed) + b"\n")
            forget(error)
        compiled.reset()
        if opened is not None:
            release_memory(opened.device)
    if opened is not None:
        opened.close()
    compiled.end()


def _variant(opened: OpenedJob, asked: StepsJob, name: str, told: BinaryIO) -> Iterator[StepsState]:
    """Build and warm a variant, and run its steps: yields what there is to say before and after."""
    build = opened.builder.build(opened.scenario.variants[name])
    try:
        opened.builder.first_step(build)
        with build.context():
            for _ in range(_WARM_STEPS):  # what compiles and chooses does so now
                build.restore()
                wait_for(build.work.step())
        yield StepsState(variant=name, state="ready")
        for _ in range(asked.rounds):
            line = told.readline() if asked.wait else b"\n"
            if not line:
                raise EOFError("the line that begins its steps did not come")
            steps = int(line) if line.strip() else asked.steps
            if not steps:
                return
            yield _round(opened, build, name, steps)
    finally:
        build.close()


def _round(opened: OpenedJob, build: Build, name: str, steps: int) -> StepsState:
    with build.context(), ExitStack() as profiled:
        build.restore()
        opened.wait()
        if opened.device.type == "cuda":
            cuda: Any = torch.cuda
            profiled.enter_context(cuda.profiler.profile())
            # of the whole process: a backward pass launches in a thread of its own
            profiled.callback(cuda.nvtx.range_end, cuda.nvtx.range_start(f"gpulab:{name}"))
        begin = time_ns()
        wait_for(call_each(repeat(build.work.step, steps)))
        opened.wait()
        end = time_ns()
    return StepsState(variant=name, state="done", begin_ns=begin, end_ns=end, steps=steps)


if __name__ == "__main__":
    main()
