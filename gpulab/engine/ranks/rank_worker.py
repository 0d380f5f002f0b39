"""A rank other than 0, in a process that rank 0 has forked: it does what it is told until the pipe
ends.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from gpulab.core.jobs import AnyJob, Calibrate, path_of
from gpulab.core.machine import Device
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.lab import RankOfLab, WorkerLab
from gpulab.engine.build.load import load
from gpulab.engine.measure.clock import Interruption, WallClock
from gpulab.engine.measure.outputs import read
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.device import open_device, release_memory, waiter
from gpulab.engine.processes.failure import SkippedError, is_out_of_memory, text_of, type_name
from gpulab.engine.ranks.group import device_of_rank, join, threads_of_rank
from gpulab.engine.ranks.links import transfers
from gpulab.engine.ranks.orders import UNANSWERED, Answer, reading
from gpulab.engine.ranks.shared_tensors import SharedTensors
from gpulab.engine.ranks.where import place
from gpulab.scenario import Param, Variant


@dataclass
class RankWorker:
    """A rank of a job. Its methods without an underscore are orders."""

    _job: AnyJob
    _rank: int
    _seed: int
    _store: str
    _orders: Connection
    _failure_pipe: Connection
    """The ends of two pipes."""
    _outputs: SharedTensors
    _builds: dict[int, Build] = field(default_factory=dict)
    _returned: dict[int, object] = field(default_factory=dict)
    _variants: dict[str, Variant] = field(default_factory=dict)
    _idle: bool = False

    def __post_init__(self) -> None:
        self._path = path_of(self._job)
        self._opened: tuple[torch.device, Device]
        self._builder: Builder
        self._group: dist.ProcessGroup
        self._clock: WallClock

    def serve(self) -> NoReturn:
        """Carry out orders; the process ends with the pipe."""
        threading.Thread(target=self._say_where, daemon=True).start()
        with suppress(EOFError, OSError):
            self._carry_out("prepare", {})
            self._carry_out("join", {})
            while True:
                self._idle = True
                order, values = self._orders.recv()
                self._idle = False
                self._carry_out(order, values)
        os._exit(0)

    def _carry_out(self, order: str, values: Mapping[str, Any]) -> None:
        try:
            answer = getattr(self, order)(**values) or Answer()
        except BaseException as error:
            answer = self._failed(error)
            # rank 0 may be in a collective of the block, and hear no answer
            if order in (*UNANSWERED, "block"):
                self._failure_pipe.send(answer.problem)
        if order not in UNANSWERED:
            self._orders.send(answer)

    def prepare(self) -> None:
        job = self._job
        self._opened = open_device(
            device_of_rank(job.device, self._rank), threads_of_rank(job.threads, job.ranks)
        )
        if not isinstance(job, Calibrate):
            self._variants = dict(load(job.subject).variants)

    def join(self) -> None:
        job = self._job
        device, info = self._opened
        wait = waiter(device)
        self._group = join(self._store, self._rank, job.ranks, device)
        rank = RankOfLab(self._rank, job.ranks, self._group)
        lab = WorkerLab(device, info, WorkerPosition(), rank)
        # each rank has data of its own, the same for every variant
        self._builder = Builder(lab, {}, self._seed + 7919 * self._rank, wait)
        self._clock = WallClock(wait)
        self._clock.before_block = self._wait_for_start

    def build(self, key: int, variant: str, params: Mapping[str, Param]) -> Answer:
        if self._builder.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._builder.device)
        build = self._builder.build(self._variants[variant], params=params)
        self._builds[key] = build
        return Answer(has_state=bool(build.state))

    def adopt(self, key: int) -> None:
        self._builds[key].adopt()

    def restore(self, key: int) -> None:
        self._builds[key].restore()

    def step(self, key: int) -> None:
        self._returned[key] = self._builder.step(self._builds[key])[0]

    def block(
        self, key: int, steps: int, lead_in: int, restore: bool, restore_after: int | None
    ) -> Answer:
        """It answers twice: once it is about to begin, when it waits for rank 0's word, and when it
        is done. `restore_after`: so many steps the state is put back once more.
        """
        build = self._builds[key]
        interruption = None
        if restore_after is not None:
            interruption = Interruption(restore_after, build.restore)
        block = self._clock.block(
            build, steps, lead_in=lead_in, restore=restore, interruption=interruption
        )
        self._returned[key] = self._clock.returned
        self._clock.forget()
        memory = None
        if self._builder.device.type == "cuda":
            memory = torch.cuda.max_memory_allocated(self._builder.device)
        return Answer(
            seconds=block.time_s, memory_bytes=memory, reading=reading(self._builder.device)
        )

    def _wait_for_start(self) -> None:
        self._clock.wait()
        self._orders.send(Answer())
        self._orders.recv()

    def use_link(self, link: str, size: int, steps: int, blocks: int) -> None:
        builder = self._builder
        transfers(link, size, steps, blocks, self._rank, self._group, builder.device, builder.wait)

    def output(self, key: int) -> Answer:
        """Write what the last step has computed."""
        output = read(self._builds[key], self._returned.get(key))
        return Answer(tensors=self._outputs.write(output))

    def close(self, key: int) -> None:
        self._returned.pop(key, None)
        build = self._builds.pop(key, None)
        if build is not None:
            build.close()
        release_memory(self._builder.device)

    def _failed(self, error: BaseException) -> Answer:
        """Return what an order raised, in words, and whether the variant asked to be left out."""
        if type(error) is SkippedError:
            reason = str(error.finding.values.get("reason", "")) or "skipped"
            return Answer(problem=reason, skipped=True)
        line = ""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._path:
                line = f" (line {trace.tb_lineno})"
            trace = trace.tb_next
        text = text_of(error).partition("\n")[0]
        kind = "out of memory: " if is_out_of_memory(error) else ""
        return Answer(problem=f"{kind}{type_name(error)}: {text}"[:500] + line)

    def _say_where(self) -> None:
        """Answer each time that rank 0 asks where this rank is; the main thread may hang."""
        with suppress(EOFError, OSError):
            while True:
                self._failure_pipe.recv()
                self._failure_pipe.send(place(self._path, idle=self._idle))


def redirect_output(stderr_tail: int) -> None:
    """Rank 0 has printed what a scenario prints; `stderr_tail` takes this rank's errors."""
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(stderr_tail, 2)
    os.close(nothing)
