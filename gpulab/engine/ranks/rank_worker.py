"""A rank other than 0, in a process that rank 0 has forked: it does what it is told until the pipe
ends.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NoReturn

import msgspec
import torch
import torch.distributed as dist

from gpulab.core.jobs import AnyJob, Calibrate, subject_of
from gpulab.core.machine import Device
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.lab import RankOfLab, WorkerLab
from gpulab.engine.build.load import load
from gpulab.engine.measure.clock import Interruption, WallClock
from gpulab.engine.measure.outputs import read
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.device import open_device, release_memory, waiter
from gpulab.engine.processes.failure import SkippedError, is_a, text_of, type_name
from gpulab.engine.ranks.group import device_of_rank, join, threads_of_rank
from gpulab.engine.ranks.links import transfers
from gpulab.engine.ranks.orders import (
    Act,
    Answer,
    AnyOrder,
    BuildVariant,
    Failed,
    Layout,
    RunBlock,
    UseLink,
)
from gpulab.engine.ranks.reading import reading
from gpulab.engine.ranks.shared_tensors import SharedTensors
from gpulab.engine.ranks.where import place
from gpulab.engine.step_clock import Block
from gpulab.scenario import Variant


class RankWorker:
    """Rank `rank` of a job. `orders` and `failure_pipe` are its ends of two pipes."""

    def __init__(
        self,
        job: AnyJob,
        rank: int,
        seed: int,
        store: str,
        orders: Connection,
        failure_pipe: Connection,
        outputs: SharedTensors,
    ) -> None:
        self._job = job
        subject = subject_of(job)
        self._path = subject.path if subject else ""
        self._rank = rank
        # each rank has data of its own, the same for every variant
        self._seed = seed + 7919 * rank
        self._store = store
        self._orders = orders
        self._failure_pipe = failure_pipe
        self._outputs = outputs
        self._builds: dict[int, Build] = {}
        self._returned: dict[int, object] = {}
        self._variants: dict[str, Variant] = {}
        self._opened: tuple[torch.device, Device]
        self._builder: Builder
        self._group: dist.ProcessGroup
        self._clock: _RankClock
        self._block = Answer()
        self._idle = False
        self._position = WorkerPosition()

    def serve(self) -> NoReturn:
        """Carry out orders; the process ends with the pipe."""
        threading.Thread(target=self._say_where, daemon=True).start()
        with suppress(EOFError, OSError):
            for begin in (self._prepare, self._join):
                problem, _ = self._problem_of(begin)
                self._answer(Answer(problem=problem))
            while True:
                self._idle = True
                line = self._orders.recv_bytes()
                self._idle = False
                self._carry_out(msgspec.json.decode(line, type=AnyOrder))
        os._exit(0)

    def _prepare(self) -> None:
        job = self._job
        self._opened = open_device(
            device_of_rank(job.device, self._rank), threads_of_rank(job.threads, job.ranks)
        )
        if not isinstance(job, Calibrate):
            self._variants = dict(load(job.subject).variants)

    def _join(self) -> None:
        job = self._job
        device, info = self._opened
        wait = waiter(device)
        self._group = join(self._store, self._rank, job.ranks, device)
        rank = RankOfLab(self._rank, job.ranks, self._group)
        lab = WorkerLab(device, info, self._position, rank)
        self._builder = Builder(lab, {}, self._seed, wait)
        self._clock = _RankClock(wait, self._wait_for_start)

    def _carry_out(self, order: AnyOrder) -> None:
        match order:
            case BuildVariant():
                self._answer(self._build(order))
            case RunBlock():
                problem, _ = self._problem_of(lambda: self._run_block(order))
                if problem:  # rank 0 may be in a collective of the block, and hear no answer
                    self._report_failure(problem)
                self._answer(Answer(problem=problem) if problem else self._block)
            case Act(do="output"):
                self._send_output(order.key)
            case UseLink():
                self._unanswered(lambda: self._use_link(order))
            case Act(do="close"):
                problem, _ = self._problem_of(lambda: self._close(order.key))
                self._answer(Answer(problem=problem))
            case Act(do="step"):
                self._unanswered(lambda: self._step(order.key))
            case Act(do="adopt"):
                self._unanswered(lambda: self._builds[order.key].adopt())
            case Act(do="restore"):
                self._unanswered(lambda: self._builds[order.key].restore())

    def _build(self, order: BuildVariant) -> Answer:
        variant = self._variants[order.variant]
        made: list[Build] = []
        if self._builder.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._builder.device)
        problem, skipped = self._problem_of(
            lambda: made.append(self._builder.build(variant, params=order.params))
        )
        if not made:
            return Answer(problem=problem, skipped=skipped)
        self._builds[order.key] = made[0]
        return Answer(has_state=bool(made[0].state))

    def _step(self, key: int) -> None:
        build = self._builds[key]
        self._returned[key] = self._builder.step(build)[0]

    def _run_block(self, order: RunBlock) -> None:
        build = self._builds[order.key]
        interruption = None
        if order.restore_after is not None:
            interruption = Interruption(order.restore_after, build.restore)
        self._clock.starts_together = True
        try:
            block = self._clock.block(
                build,
                order.steps,
                lead_in=order.lead_in,
                restore=order.restore,
                interruption=interruption,
            )
        finally:
            self._clock.starts_together = False
        self._returned[order.key] = self._clock.returned
        self._clock.forget()
        memory = None
        if self._builder.device.type == "cuda":
            memory = torch.cuda.max_memory_allocated(self._builder.device)
        self._block = Answer(
            seconds=block.time_s * order.steps,
            memory_bytes=memory,
            reading=reading(self._builder.device),
        )

    def _wait_for_start(self) -> None:
        self._answer(Answer())
        self._orders.recv_bytes()

    def _use_link(self, order: UseLink) -> None:
        builder = self._builder
        transfers(order, self._rank, self._group, builder.device, builder.wait)

    def _send_output(self, key: int) -> None:
        layouts: list[Layout] = []

        def write() -> None:
            output = read(self._builds[key], self._returned.get(key))
            layouts.extend(self._outputs.write(output))

        problem, _ = self._problem_of(write)
        self._answer(Answer(problem=problem, tensors=layouts))

    def _close(self, key: int) -> None:
        self._returned.pop(key, None)
        build = self._builds.pop(key, None)
        if build is not None:
            build.close()
        release_memory(self._builder.device)

    def _answer(self, answer: Answer) -> None:
        self._orders.send_bytes(msgspec.json.encode(answer))

    def _unanswered(self, act: Callable[[], object]) -> None:
        problem, _ = self._problem_of(act)
        if problem:
            self._report_failure(problem)

    def _report_failure(self, problem: str) -> None:
        self._failure_pipe.send_bytes(msgspec.json.encode(Failed(problem=problem)))

    def _problem_of(self, act: Callable[[], object]) -> tuple[str, bool]:
        """Return what a call raised, in words, and whether the variant asked to be left out."""
        try:
            act()
        except BaseException as error:
            if type(error) is SkippedError:
                return str(error.finding.values.get("reason", "")) or "skipped", True
            return self._described(error), False
        return "", False

    def _described(self, error: BaseException) -> str:
        line = ""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._path:
                line = f" (line {trace.tb_lineno})"
            trace = trace.tb_next
        text = text_of(error).partition("\n")[0]
        kind = "out of memory: " if is_a(error, MemoryError, torch.OutOfMemoryError) else ""
        return f"{kind}{type_name(error)}: {text}"[:500] + line

    def _say_where(self) -> None:
        """Answer each time that rank 0 asks where this rank is; the main thread may hang."""
        with suppress(EOFError, OSError):
            while True:
                self._failure_pipe.recv_bytes()
                here = place(self._path, idle=self._idle)
                self._failure_pipe.send_bytes(msgspec.json.encode(here))


class _RankClock(WallClock):
    """Times blocks that begin when rank 0 says so."""

    __slots__ = ("_wait_for_start", "starts_together")

    def __init__(self, wait: Callable[[], None] | None, wait_for_start: Callable[[], None]) -> None:
        self._wait_for_start = wait_for_start
        self.starts_together = False
        super().__init__(wait)

    def _run(self, calls: Iterable[Callable[[], object]], steps: int) -> Block:
        if self.starts_together:
            self.starts_together = False
            self.wait()
            self._wait_for_start()
        return super()._run(calls, steps)


def redirect_output(stderr_tail: int) -> None:
    """Rank 0 has printed what a scenario prints; `stderr_tail` takes this rank's errors."""
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(stderr_tail, 2)
    os.close(nothing)
