"""Two sides measured in turn: pairs of fresh processes, one of each side, that take the same steps
a millisecond at a time, on the same core where a step needs no more than one.

A clock that drifts, a neighbour that computes and a core that is shared are then the same for both
halves of a pair, and what differs from process to process is different in each pair.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from math import log
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import send_handle
from pathlib import Path
from statistics import fmean, median
from time import monotonic
from typing import Any

import msgspec

from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.packages import module_name
from gpulab.core.text import cut, one_line, plain
from gpulab.features.compare.findings import dtype_changed, outputs_not_compared
from gpulab.features.compare.measured import Pairs
from gpulab.options import UsageError
from gpulab.proc.orphans import Orphans
from gpulab.proc.pipes import Bell, connection_pair
from gpulab.proc.spawn import DEVNULL, spawn
from gpulab.proc.tree import kill_group
from gpulab.session.drive import StoppedError
from gpulab.session.sides import Measured
from gpulab.session.worker_process import usual_environment, worker_environment

_GPULAB = Path(__file__).parents[1]
_BLOCK_S, _DEVICE_BLOCK_S = 1e-3, 2e-3
"""A shorter block is timed with its first step's caches; a longer one more often meets another
process on its core: the ratio of two processes of one function had a standard deviation of 0.65 %
with 80 blocks of 1 ms, and 1.1 to 1.6 % with 40 of 2 ms, on a busy machine.
"""
_TURN_S = 0.16
_BEFORE_CUDA = ("numpy", "scipy", "torch")
"""What opens no device while it is imported: after that no forked process could use a GPU."""


class SideError(Exception):
    """One side cannot be measured: its name and why."""

    def __init__(self, side: str, message: str) -> None:
        super().__init__(plain(message))
        self.side = side


@dataclass(frozen=True)
class Probe:
    """The modules and files that a process of one side imported and read until its first steps were
    over.
    """

    step_s: Mapping[str, float]
    """By the names of its own side."""
    modules: Mapping[str, str]
    """Files by the names of modules."""
    files: Sequence[str]
    """Opened meanwhile."""
    libraries: Sequence[str]
    """Folders of the standard library and of installed packages."""
    versions: Mapping[str, str]
    device: Mapping[str, Any]
    processes: bool
    """Whether the project's own code started a process."""
    parallel: bool
    """Whether steps run in several threads or processes."""
    threads: int
    """Of Python."""


class SideWorker:
    """A process of one side, at the other end of a connection."""

    def __init__(
        self, side: str, connection: Connection, runner: InterleavedRunner, log_file: Path
    ) -> None:
        self._side, self._connection = side, connection
        self._runner, self._log_file = runner, log_file

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return what it answers. SideError where it raises or ends."""
        with suppress(OSError):
            self._connection.send_bytes(json.dumps(request).encode())
        return self.answer()

    def answer(self) -> dict[str, Any]:
        self._runner.poll(self._connection, self._side)
        try:
            answer: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise SideError(self._side, f"its process ended{self._last_words()}") from None
        if "error" in answer:
            raise SideError(self._side, answer["error"])
        return answer

    def _last_words(self) -> str:
        text = self._log_file.read_bytes()[-4000:].decode(errors="replace").strip()
        return f": {cut(one_line(text.splitlines()[-1]), 200)}" if text else ""

    def close(self) -> None:
        self._connection.close()


class _ForkServer:
    """A fork server: one process, and those that it forks."""

    def __init__(
        self,
        python: str,
        environment: Mapping[str, str],
        preload: Sequence[str],
        runner: InterleavedRunner,
    ) -> None:
        self._runner = runner
        self._log_file = runner.folder / f"{secrets.token_hex(4)}.log"
        self._control, theirs = connection_pair()
        started = monotonic()
        with theirs, self._log_file.open("wb") as output:
            self.process = spawn(
                [python, "-P", str(_GPULAB / "engine/sides/start.py"), str(theirs.fileno())],
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=dict(environment),
            )
        self._python = python
        self.start_s = self.used_s = 0.0
        """What its imports took, and its pairs."""
        try:
            self.preload(preload)
        except BaseException:
            self.close()
            raise
        self.start_s = monotonic() - started

    def preload(self, modules: Sequence[str]) -> None:
        """Have it import these, for all that it forks later."""
        started = monotonic()
        self._order({"preload": list(modules)})
        self._runner.poll(self._control, self._python)
        try:
            self._control.recv_bytes()
        except (EOFError, OSError):
            words = self._log_file.read_text(errors="replace").strip().splitlines()
            said = words[-1] if words else "it did not start"
            raise UsageError(f"{self._python}: {said}") from None
        self.start_s += monotonic() - started

    def fork(self, side: str, task: Mapping[str, Any]) -> SideWorker:
        ours, theirs = connection_pair()
        # where the server has died, the member's end is closed, which says it
        with theirs, suppress(OSError):
            self._order({"fork": task})
            send_handle(self._control, theirs.fileno(), self.process.pid)
        return SideWorker(side, ours, self._runner, self._log_file)

    def close(self) -> None:
        kill_group(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._control.close()
        self._log_file.unlink(missing_ok=True)

    def _order(self, order: Mapping[str, Any]) -> None:
        with suppress(OSError):
            self._control.send_bytes(json.dumps(order).encode())


class InterleavedRunner(ExitStack):
    """A context manager: leaving it leaves no process behind. `folder` is for its files."""

    def __init__(
        self,
        sides: tuple[Measured, Measured],
        jobs: tuple[Measure | TimeFunctions, Measure | TimeFunctions],
        folder: Path,
        silence_s: float | None = None,
    ) -> None:
        """`silence_s`: how long to wait for a side's answer."""
        super().__init__()
        self._sides, self._jobs = sides, jobs
        self.folder = folder
        self._silence_s = silence_s or 600.0
        job = jobs[0]
        self.seed = secrets.randbits(31) if job.seed is None else job.seed
        self.draw = random.Random(self.seed)
        self._servers: dict[str, _ForkServer] = {}
        self._starts: dict[str, int] = {}
        """How many servers each Python had."""
        self._preload = ["gpulab.engine.sides.scenario"] if isinstance(job, Measure) else []
        self._pinned = False
        self._steps: dict[str, tuple[int, int]] = {}
        """Steps of a block, by the names of the first side."""
        self._turns: dict[str, int] = {}
        self.names: dict[str, str] = {}
        """Of the steps that both sides have: the second side's by the first's."""
        self.pairs: dict[str, Pairs] = {}
        self._stopping = Bell()

    def __enter__(self) -> InterleavedRunner:
        self._orphans = self.enter_context(Orphans())
        self.callback(self._orphans.end)
        self.callback(self._close_servers)
        return self

    def stop(self) -> None:
        """From a signal handler, or another thread."""
        self._stopping.ring()

    def poll(self, connection: Connection, side: str) -> None:
        """Wait until there is something to read. StoppedError, SideError."""
        ready = wait([connection, self._stopping.fd], self._silence_s)
        if self._stopping.fd in ready:
            raise StoppedError
        if not ready:
            raise SideError(side, f"no answer within {self._silence_s:.0f} s (--timeout)")

    def probe(self) -> tuple[Probe, Probe]:
        """Load each side once, take its first steps, and plan the pairs."""
        members = self._fork(self.seed, probes=True)
        descriptions = [member.answer() for member in members]
        self._probed = members
        before, after = (Probe(**each) for each in descriptions)
        self._plan(before, after)
        return before, after

    def compare_outputs(self) -> tuple[dict[str, str], list[Finding]]:
        """Return what differs in the outputs of the first call of steps, by their names; and why
        others could not be compared, or have another dtype.
        """
        before, after = self._probed
        differs: dict[str, str] = {}
        why_not: dict[str, str] = {}
        found: list[Finding] = []
        paths = {name: str(self.folder / f"{number}") for number, name in enumerate(self.names)}
        for name, other in self.names.items():
            answer = before.ask(do="keep", name=name, path=paths[name])
            if "why_not" not in answer:
                answer = after.ask(do="agree", name=other, path=paths[name])
            if "why_not" in answer:
                why_not[name] = answer["why_not"]
            elif answer["differs"]:
                differs[name] = answer["differs"]
            elif answer["dtypes"]:
                found.append(dtype_changed(name, what=answer["dtypes"]))
        if differs:
            again = self._fork(self.seed, probes=True)
            for member in again:
                member.answer()
            for name in list(differs):
                if again[0].ask(do="agree", name=name, path=paths[name]).get("differs"):
                    del differs[name]
                    why_not[name] = "it is another one in every process, for the same seed"
            self._close(again)
        self._close(self._probed)
        for server in self._servers.values():
            server.preload(self._preload)
        for path in paths.values():
            Path(path).unlink(missing_ok=True)
        found += [outputs_not_compared(name, why=why) for name, why in why_not.items()]
        return differs, found

    def measure_pair(self) -> None:
        members = self._fork(self.draw.getrandbits(31), probes=False)
        started = monotonic()
        for member in members:
            member.answer()
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in self.names}
        begun = monotonic()
        most_s = 3.0 * _TURN_S * len(self.names)
        for turn in range(max(self._turns.values())):
            # others compute on this core: more pairs tell more than more turns
            if turn >= 8 and turn % 2 == 0 and monotonic() - begun > most_s:
                break
            names = [name for name in self.names if turn < self._turns[name]]
            self.draw.shuffle(names)
            for name in names:
                swap = bool((turn + self._number) % 2)
                times[name].append(self._turn(members, name, swap=swap))
        self._close(members)
        self._number += 1
        for name, pairs in self.pairs.items():
            pairs.ratios.append(_balanced(times[name]))
            pairs.before_s.append(median(before for before, _ in times[name]))
            pairs.after_s.append(median(after for _, after in times[name]))
        for server in self._servers.values():
            server.used_s += monotonic() - started

    def _turn(self, members: Sequence[SideWorker], name: str, *, swap: bool) -> tuple[float, float]:
        """Seconds per item of a block of each."""
        names = name, self.names[name]
        seconds = [0.0, 0.0]
        for side in (1, 0) if swap else (0, 1):
            steps = self._steps[name][side]
            seconds[side] = members[side].ask(do="block", name=names[side], steps=steps)["s"]
        return seconds[0], seconds[1]

    def _plan(self, before: Probe, after: Probe) -> None:
        self._number = 0
        self.names = self._names_of(before, after)
        on_cpu = all(each.device.get("kind") == "cpu" for each in (before, after))
        parallel = before.parallel or after.parallel or self._jobs[0].threads > 1
        self._pinned = on_cpu and not parallel
        own = str(_GPULAB) if isinstance(self._jobs[0], Measure) else None
        shared = _shared_imports(before, after, own, on_cpu=on_cpu)
        if max(before.threads, after.threads) > 1:  # whose fork would have but one of them
            shared = [name for name in shared if name == "torch"]
        self._preload = shared
        block_s = _BLOCK_S if isinstance(self._jobs[0], TimeFunctions) else _DEVICE_BLOCK_S
        for name, other in self.names.items():
            times = before.step_s[name], after.step_s[other]
            # steps whose times differ by less have equally many in a block
            if max(times) <= 2.0 * min(times):
                times = min(times), min(times)
            first, second = (max(1, round(block_s / max(time, 1e-9))) for time in times)
            self._steps[name] = first, second
            turn_s = first * times[0] + second * times[1]
            self._turns[name] = max(1, min(80, round(_TURN_S / turn_s)))
            self.pairs[name] = Pairs()

    def _names_of(self, before: Probe, after: Probe) -> dict[str, str]:
        functions = self._sides[0].functions, self._sides[1].functions
        if functions[0]:
            return dict(zip(*functions, strict=True))
        return {name: name for name in before.step_s if name in after.step_s}

    def _fork(self, seed: int, *, probes: bool) -> list[SideWorker]:
        """A process of each side, in random order; both begin alike."""
        layout = self.draw.getrandbits(31)
        core = None
        if self._pinned:
            core = self.draw.choice(sorted(os.sched_getaffinity(0)))
        members: dict[int, SideWorker] = {}
        for side in self.draw.sample((0, 1), 2):
            task = self._task(side, seed=seed, layout=layout, core=core, probes=probes)
            members[side] = self._server(side).fork(self._sides[side].name, task)
        return [members[0], members[1]]

    def _server(self, side: int) -> _ForkServer:
        """The server of a side, anew where the one before has served long enough."""
        python = self._sides[side].python
        server = self._servers.get(python)
        # it is replaced once its pairs took twice as long as its own start
        if server is not None and server.used_s > 2.0 * server.start_s:
            self._servers.pop(python).close()  # once: its number may be another process's then
            server = None
        if server is None:
            job = self._jobs[side]
            is_scenario = isinstance(job, Measure)
            usual = worker_environment(job) if is_scenario else usual_environment(job.threads)
            self._starts[python] = start = self._starts.get(python, 0) + 1
            # alike on both sides
            hash_seed = str(random.Random(self.seed + start).randrange(1, 2**32))
            own = {"PYTHONHASHSEED": hash_seed, **self._orphans.environment}
            environment = {**usual, **own}
            server = self._servers[python] = _ForkServer(python, environment, self._preload, self)
        return server

    def _task(self, number: int, **each_time: Any) -> dict[str, Any]:
        side, job = self._sides[number], self._jobs[number]
        task = {
            "folders": side.folders,
            "cwd": str(side.working_folder),
            "file": str(side.file),
            "module": module_name(side.file, f"_side_{side.file.stem}"),
            "functions": side.functions,
            "arguments": None,
            "device": job.device,
            "threads": job.threads,
            "writes_bytecode": side.is_ours,
            **each_time,
        }
        if isinstance(job, Measure):
            task["job"] = msgspec.json.encode(job).decode()
        elif job.subject.arguments is not None:
            arguments = job.subject.arguments
            file = arguments.path if arguments.source else ""
            task["arguments"] = f"{file}:{arguments.function}"
        return task

    def _close(self, members: Sequence[SideWorker]) -> None:
        """End processes that have done their part, with the teardown of what they built."""
        for member in members:
            member.ask(do="tear_down")
            member.close()

    def _close_servers(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()


def _balanced(times: Sequence[tuple[float, float]]) -> float:
    """log(after / before), in equal parts of turns that began with one side and with the other: who
    comes first may be slower by a fifth.
    """
    logs = [log(after / before) for before, after in times]
    return fmean(median(half) for half in (logs[::2], logs[1::2]) if half)


def _shared_imports(before: Probe, after: Probe, own: str | None, *, on_cpu: bool) -> list[str]:
    """Modules that both sides import from the same file of a library, or of the folder `own`, in
    their order: a server imports them once for all.
    """
    shared = []
    folders = tuple(folder for folder in (*before.libraries, own) if folder)
    for name, file in before.modules.items():
        is_library = file.startswith(folders)
        if not is_library or after.modules.get(name) != file:
            continue
        if on_cpu or name.startswith((*_BEFORE_CUDA, "gpulab")):
            shared.append(name)
    return shared
