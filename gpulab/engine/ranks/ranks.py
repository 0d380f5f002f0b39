"""The ranks of a scenario, as rank 0 sees them: it is the measuring process itself, and tells the
others what to do.

torch's launcher would start each rank from the beginning, four seconds of imports a process and as
many processes as a verdict takes. So a measuring process forks its ranks before it opens a device,
and has them build, step and end what it does itself; everything else of the lab stays as it is. A
block begins in all of them at once, and the slowest counts.

Where one fails and the others do not, they may wait for each other for ever: then all but rank 0
are ended, which has rank 0's collective raise, and no variant has any after that.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from gpulab.core.events import DEVICE_LOST, Event
from gpulab.core.jobs import AnyJob, TimedJob, path_of
from gpulab.core.text import plain
from gpulab.engine.build.lab import RankOfLab
from gpulab.engine.processes.device import DeviceError
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.ranks.group import device_of_rank, join
from gpulab.engine.ranks.links import steps_for, transfers
from gpulab.engine.ranks.orders import Answer, reading
from gpulab.engine.ranks.shared_tensors import SharedTensors
from gpulab.engine.ranks.where import Place, missing, place
from gpulab.features import present
from gpulab.proc.fork import fork
from gpulab.proc.pipes import connection_pair

_GRACE_S = 2.0
"""After one has failed, for the others to fail by themselves."""
_POLL_S = 0.25
_ANSWER_S = 1.0
_BLOCKS = 12
_TAIL_BYTES = 400


class RankError(RuntimeError):
    """A rank failed, ended or did not come; the message names it."""


@dataclass
class _Other:
    """A rank other than 0: its process, and this end of the pipes to it."""

    rank: int
    pid: int
    exit_fd: int
    stderr_tail: int
    """A file descriptor with what it wrote to stderr."""
    outputs: SharedTensors
    orders: Connection
    failure_pipe: Connection
    has_state: set[int] = field(default_factory=set)
    """Builds that have state to restore."""


class Ranks:
    """All ranks of one measuring process; made before a device is opened."""

    def __init__(self, job: AnyJob, seed: int) -> None:
        self.count = job.ranks
        self._path = path_of(job)
        self._job = job
        kept = job.folder if isinstance(job, TimedJob) else None
        self._folder = tempfile.mkdtemp(prefix="gpulab-ranks-", dir=kept)
        self._others = [self._fork(rank, seed) for rank in range(1, job.ranks)]
        self._reporter: Reporter | None = None
        self._builds = 0
        self._on_gpu = False
        self._group: dist.ProcessGroup
        self._device: torch.device
        # Seconds that ranks may wait for one of them.
        self._limit_s = float(os.environ.get("GPULAB_RANK_TIMEOUT") or 60.0)
        self._problem = ""
        """Why there are no other ranks any more."""
        self._failed: list[str] = []
        """What failed without an answer, since rank 0 looked."""
        self._waits_since: float | None = None
        """Since when rank 0 is in a step, or waits for an answer."""
        self._failed_at: float | None = None
        self._closing = False
        self.announced = 0
        """Steps that the others take without being told."""
        self.in_block = False
        self._blocks: defaultdict[tuple[str, int], list[Answer]] = defaultdict(list)
        """By variant and rank, of one step of each block."""

    def _fork(self, rank: int, seed: int) -> _Other:
        stderr_tail = os.memfd_create("stderr")
        outputs = SharedTensors(os.memfd_create("outputs"))
        orders, orders_end = connection_pair()
        failure_pipe, failure_end = connection_pair()
        pid = fork()
        if pid == 0:
            orders.close()
            failure_pipe.close()
            from gpulab.engine.ranks.rank_worker import RankWorker, redirect_output

            redirect_output(stderr_tail)
            RankWorker(self._job, rank, seed, self._store, orders_end, failure_end, outputs).serve()
        orders_end.close()
        failure_end.close()
        return _Other(rank, pid, os.pidfd_open(pid), stderr_tail, outputs, orders, failure_pipe)

    @property
    def _store(self) -> str:
        return str(Path(self._folder) / "store")

    def join(self, device: torch.device, reporter: Reporter) -> RankOfLab:
        """Form the group. DeviceError where there are fewer GPUs than ranks."""
        self._reporter = reporter
        self._on_gpu = device.type == "cuda"
        if self._on_gpu:
            self._require_gpus(device)
        threading.Thread(target=self._watch, daemon=True).start()
        self.gather("its start")  # one that fails here would be waited for in vain
        with self._waiting():
            group = join(self._store, 0, self.count, device)
        self.gather("joining the others")
        self._group = group
        self._device = device
        return RankOfLab(0, self.count, group)

    def _require_gpus(self, device: torch.device) -> None:
        last = device_of_rank(str(device), self.count - 1)
        there = torch.cuda.device_count()
        if int(last.partition(":")[2]) >= there:
            raise DeviceError(
                f"{self.count} ranks take a GPU each, {device} to {last}, and there are {there}: "
                "set fewer ranks, or run them on the CPU with gloo (--device cpu)"
            )

    def send(self, order: str, **values: Any) -> None:
        self._require_ranks()
        for other in self._others:
            with suppress(OSError):  # its end is noticed by the one that watches
                other.orders.send((order, values))

    def gather(self, during: str) -> list[Answer]:
        """Collect the answers of all other ranks. RankError where one failed."""
        self._waits_since = self._waits_since or monotonic()
        try:
            return [self._receive(other, during) for other in self._others]
        finally:
            self._waits_since = None

    def link_times(self, link: str, size: int, seconds: float) -> list[float]:
        """Seconds per transfer of so many bytes over a link, of blocks of about so long in all."""
        (step_s,) = self._transfers(link, size, 1, 1)
        steps = steps_for(seconds / _BLOCKS, step_s)
        return self._transfers(link, size, steps, _BLOCKS)

    def _transfers(self, link: str, size: int, steps: int, blocks: int) -> list[float]:
        self.send("use_link", link=link, size=size, steps=steps, blocks=blocks)
        wait = self._reporter.wait if self._reporter else None
        with self._waiting():
            return transfers(link, size, steps, blocks, 0, self._group, self._device, wait)

    def watched(self, wait: Callable[[], None]) -> Callable[[], None]:
        """A wait for the device that ends where another rank fails: with NCCL a step returns at
        once, and what hangs is the wait.
        """

        def watched_wait() -> None:
            with self._waiting():
                wait()

        return watched_wait

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Within it rank 0 waits for others, and raises what they are the cause of as theirs."""
        since = self._waits_since
        self._waits_since = since or monotonic()
        try:
            yield
        except BaseException as error:
            self.raise_cause(error)
        self._waits_since = since

    def new_build(self) -> int:
        self._builds += 1
        return self._builds

    def ask_for_outputs(self, key: int) -> None:
        """Have every other rank read what a build gives; `outputs` has it then."""
        self.send("output", key=key)
        self._waits_since = monotonic()

    def outputs(self) -> list[list[torch.Tensor]]:
        """Collect the outputs that every other rank was asked for; on a GPU what is large.
        RankError where one failed.
        """
        answers = []
        failed: RankError | None = None
        for other in self._others:
            try:
                answers.append(self._receive(other, "reading its output"))
            except RankError as error:
                failed = failed or error
        self._waits_since = None
        if failed is not None:
            raise failed
        pairs = zip(self._others, answers, strict=True)
        return [other.outputs.read(answer.tensors) for other, answer in pairs]

    def begin_step(self, key: int) -> None:
        """Before a step of rank 0's."""
        if self.announced:
            self.announced -= 1
        else:
            self.send("step", key=key)
        self._waits_since = monotonic()

    def end_step(self) -> None:
        self._waits_since = None

    def open_block(self, key: int, steps: int, lead_in: int, **restoring: Any) -> None:
        self.send("block", key=key, steps=steps, lead_in=lead_in, **restoring)
        self.announced = lead_in + steps
        self.in_block = True

    def begin_block(self) -> None:
        """Once every rank has taken its untimed steps, all begin."""
        self.gather("before a block")
        for other in self._others:
            other.orders.send("go")

    def end_block(self, variant: str, own_s: float) -> float:
        """Seconds per step of the slowest rank."""
        own = Answer(seconds=own_s, reading=reading(self._device))
        answers = [own, *self.gather("a block")]
        for rank, answer in enumerate(answers):
            self._blocks[variant, rank].append(answer)
        return max(answer.seconds for answer in answers)

    def close_block(self) -> None:
        self.announced = 0
        self.in_block = False

    def events(self) -> Iterator[Event]:
        """Yield the times of each rank in this process's blocks, where a feature reads them."""
        events = present("ranks.events")
        if events is None:
            return
        for (variant, rank), blocks in self._blocks.items():
            readings = [block.reading for block in blocks]
            yield events.RankTimes(
                variant=variant,
                rank=rank,
                times_s=[block.seconds for block in blocks],
                memory_bytes=blocks[-1].memory_bytes,
                sm_mhz=[each.sm_mhz for each in readings if each.sm_mhz is not None],
                power_w=[each.power_w for each in readings if each.power_w is not None],
            )

    def restores(self, key: int) -> bool:
        return any(key in other.has_state for other in self._others)

    def note_state(self, key: int, answers: list[Answer]) -> None:
        for other, answer in zip(self._others, answers, strict=True):
            if answer.has_state:
                other.has_state.add(key)

    def raise_cause(self, error: BaseException) -> NoReturn:
        """Raise what rank 0 met; where another rank was the cause, that."""
        if not is_of_group(error):
            self._waits_since = None
            raise error
        cause = self._cause()
        self._waits_since = None
        if cause:
            raise RankError(cause) from error
        raise error

    def _cause(self) -> str:
        """Return the cause of a failure in another rank: its end before all that follows from it;
        empty where nothing failed.
        """
        deadline = monotonic() + _GRACE_S
        while not self._problem and monotonic() < deadline:
            # In what gloo says where another rank is gone.
            own = [problem for problem in self._failed if "onnection " not in problem]
            if own:
                self._failed.clear()
                return own[0]
            threading.Event().wait(_POLL_S / 10)
        problem = self._problem or next(iter(self._failed), "")
        self._failed.clear()
        return problem

    def close(self) -> None:
        self._closing = True
        for other in self._others:
            other.orders.close()
            other.failure_pipe.close()
        for other in self._others:
            wait([other.exit_fd], _ANSWER_S)
            self._end(other)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _receive(self, other: _Other, during: str) -> Answer:
        """RankError where it has failed, has ended, or does not answer."""
        while not other.orders.poll(_POLL_S):
            self._require_ranks()
        try:
            answer: Answer = other.orders.recv()
        except (EOFError, OSError):
            cause = self._cause() or f"rank {other.rank} ended during {during}"
            raise RankError(cause) from None
        if self._failed:
            raise RankError(self._cause())
        if answer.problem and not answer.skipped:
            raise RankError(f"rank {other.rank}, {during}: {answer.problem}")
        return answer

    def _require_ranks(self) -> None:
        if self._problem:
            raise RankError(self._problem)

    def _watch(self) -> None:
        """See to it that no rank waits for ever for another one."""
        others = list(self._others)
        while not self._closing and not self._problem:
            ends = {other.exit_fd: other for other in others}
            failing = {other.failure_pipe: other for other in others}
            try:
                ready = wait([*ends, *failing], _POLL_S)
            except OSError:  # they are being closed
                return
            if self._closing:
                return
            for each in ready:
                if each in failing:
                    self._on_failure(failing[each])
            for each in ready:
                if each in ends and not self._problem:
                    self._give_up(f"rank {ends[each].rank} ended: {self._ending(ends[each])}")
            self._look_at_the_clock()
        if self._on_gpu:
            self._see_it_end()

    def _on_failure(self, other: _Other) -> None:
        with suppress(EOFError, OSError):
            self._failed.append(f"rank {other.rank}: {other.failure_pipe.recv()}")
            self._failed_at = self._failed_at or monotonic()

    def _look_at_the_clock(self) -> None:
        waits_since = self._waits_since
        if waits_since is None:
            if not self._failed:
                self._failed_at = None
            return
        now = monotonic()
        if self._failed and self._failed_at and now - self._failed_at > _GRACE_S:
            self._give_up(self._failed[0])
        elif now - waits_since > self._limit_s:
            self._give_up(self._who_is_missing())

    def _who_is_missing(self) -> str:
        """Name the rank that the others wait for, by the collectives that each has called."""
        places = {0: place(self._path)}
        for other in self._others:
            places[other.rank] = self._place_of(other)
        return missing(places, self._limit_s)

    def _place_of(self, other: _Other) -> Place:
        with suppress(EOFError, OSError):
            other.failure_pipe.send("where")
            if other.failure_pipe.poll(_ANSWER_S) and isinstance(
                said := other.failure_pipe.recv(), Place
            ):
                return said
        return Place(line="it does not say where")

    def _give_up(self, problem: str) -> None:
        """End all other ranks, so that rank 0 comes out of what it waits in."""
        self._problem = problem
        for other in self._others:
            self._end(other)
        if self._on_gpu:
            threading.Thread(target=_abort, daemon=True).start()

    def _see_it_end(self) -> None:
        """End this process where it waits for a device that a kernel of NCCL keeps busy for ever:
        an abort of the group does not always end it, and may itself not return.
        """
        given_up_at = monotonic()
        while not self._closing:
            threading.Event().wait(_POLL_S)
            waits_since = self._waits_since
            if waits_since and monotonic() - max(waits_since, given_up_at) > _GRACE_S:
                self._end_here(self._problem)

    def _end_here(self, problem: str) -> None:
        """End this process, which does not come out of its step: what was measured has been sent,
        or is with the supervisor.
        """
        reporter = self._reporter
        if reporter is not None:
            position = reporter.position
            reporter.wait = None  # for the device
            reporter.failed(position.variant, position.stage, RankError(problem))
            reporter.channel.flush()
        os._exit(DEVICE_LOST)

    def _end(self, other: _Other) -> None:
        with suppress(ProcessLookupError):
            os.kill(other.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(other.pid, 0)

    def _ending(self, other: _Other) -> str:
        with suppress(ChildProcessError):
            code = os.waitstatus_to_exitcode(os.waitpid(other.pid, 0)[1])
            if code >= 0:
                return f"it exited with code {code}"
            size = os.fstat(other.stderr_tail).st_size
            said = os.pread(other.stderr_tail, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
            last = plain(said.decode(errors="replace").strip().rpartition("\n")[2])
            return f"{signal.Signals(-code).name}" + (f": {last}" if last else "")
        return "unknown"


def _abort() -> None:
    with suppress(Exception):
        dist.distributed_c10d._abort_process_group()


def is_of_group(error: BaseException) -> bool:
    """Return whether it may be of a connection to another rank: those have no type of their own."""
    return isinstance(error, RuntimeError)


def start(job: AnyJob, seed: int) -> Ranks | None:
    """The ranks of a job; None where it has no group."""
    return Ranks(job, seed) if job.ranks else None
