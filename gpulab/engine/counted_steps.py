"""`python -P -m gpulab.engine.counted_steps [FILE]`: runs some steps of variants, for a profiler of
another program to look at.

It reads a `StepsJob` as one line of JSON from stdin, or from FILE, and writes a `StepsState` as a
line to stdout whenever a variant is ready, done or failed. What the scenario prints goes to stderr.
On a CUDA device the steps of a variant are between cudaProfilerStart and cudaProfilerStop, in an
NVTX range `gpulab:VARIANT`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any, BinaryIO

import msgspec
import torch

from gpulab.core.counted_steps import State, StepsJob, StepsState
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

_WARM_S, _WARM_STEPS = 0.1, 3


def main() -> None:
    told = os.fdopen(to_high_number(os.dup(0)), "rb")
    answers = os.fdopen(to_high_number(os.dup(1)), "wb", buffering=0)
    _leave_to_scenario()
    line = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else told.readline()
    asked = msgspec.json.decode(line, type=StepsJob)
    compiled.keep_code_of_the_run(asked.job)
    _Steps(asked, told, answers).run()


def _leave_to_scenario() -> None:
    """Have what the scenario reads be empty, and what it prints go to stderr."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)


class _Steps:
    def __init__(self, asked: StepsJob, told: BinaryIO, answers: Any) -> None:
        self._asked = asked
        self._told = told
        self._answers = answers

    def run(self) -> None:
        """Open the job, and run the steps of each variant; a failure is told, and ends nothing."""
        asked = self._asked
        channel = Channel(os.open(os.devnull, os.O_WRONLY))  # nobody wants the engine's events
        channel.name_variants(asked.job)
        try:
            opened = open_job(
                asked.job, asked.choices, Reporter(channel, asked.job, channel.position)
            )
        except BaseException as error:
            for variant in asked.variants:
                self._failed(variant, error)
            return
        for variant in asked.variants:
            try:
                self._variant(opened, variant)
            except BaseException as error:
                self._failed(variant, error)
            compiled.reset()
            release_memory(opened.device)
        opened.close()
        compiled.end()

    def _variant(self, opened: OpenedJob, name: str) -> None:
        build = opened.builder.build(opened.scenario.variants[name])
        try:
            opened.builder.first_step(build)
            _warm(build, opened)
            self._say(StepsState(variant=name, state=State.READY))
            for _ in range(self._asked.rounds):
                steps = self._next_count()
                if not steps:
                    break
                build.restore()
                opened.wait()
                with build.context(), _profiled(opened.device, f"gpulab:{name}"):
                    begin = time_ns()
                    wait_for(call_each(repeat(build.work.step, steps)))
                    opened.wait()
                    end = time_ns()
                self._say(
                    StepsState(
                        variant=name,
                        state=State.DONE,
                        begin_ns=begin,
                        end_ns=end,
                        steps=steps,
                    )
                )
        finally:
            build.close()

    def _next_count(self) -> int:
        """Return how many steps the next round has; 0: it is not wanted."""
        line = self._told.readline() if self._asked.wait else b"\n"
        if not line:
            raise EOFError("the line that begins its steps did not come")
        return int(line) if line.strip() else self._asked.steps

    def _failed(self, variant: str, error: BaseException) -> None:
        message = first_line(error)
        if isinstance(error, VariantError):
            message = sentence(error.finding)
        self._say(StepsState(variant=variant, state=State.FAILED, message=message))
        forget(error)

    def _say(self, state: StepsState) -> None:
        self._answers.write(msgspec.json.encode(state) + b"\n")


def _warm(build: Build, opened: OpenedJob) -> None:
    """Take steps until what compiles and chooses has done so, and put the state back."""
    started = perf_counter()
    taken = 0
    with build.context():
        while taken < _WARM_STEPS or perf_counter() - started < _WARM_S:
            build.restore()
            wait_for(build.work.step())
            opened.wait()
            taken += 1
        build.restore()
        opened.wait()


@contextmanager
def _profiled(device: torch.device, mark: str) -> Iterator[None]:
    """Have a profiler that waits for it record what runs inside."""
    if device.type != "cuda":
        yield
        return
    cuda: Any = torch.cuda
    runtime = cuda.cudart()
    runtime.cudaProfilerStart()
    cuda.nvtx.range_push(mark)
    try:
        yield
    finally:
        cuda.nvtx.range_pop()
        runtime.cudaProfilerStop()


if __name__ == "__main__":
    main()
