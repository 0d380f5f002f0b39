"""The last process of a run: each variant again, under torch's profiler, which would slow whatever
came after it.
"""

from __future__ import annotations

import errno
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import msgspec
import torch
from msgspec.structs import replace
from torch.autograd.profiler import profile

from gpulab.core.jobs import Measure, ProfileOptions, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Stage
from gpulab.core.text import file_name
from gpulab.engine.build import compiled
from gpulab.engine.build.build import Build
from gpulab.engine.build.lab import PhaseTimes, recorded
from gpulab.engine.measure.context import open_job
from gpulab.engine.processes.device import release_memory
from gpulab.engine.processes.failure import SkippedError, first_line, forget
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.step_clock import wait_for
from gpulab.features import present
from gpulab.features.goodput import findings
from gpulab.features.goodput.analysis import (
    call_counts,
    is_compiled,
    is_disturbed,
    partition,
)
from gpulab.features.goodput.events import Partition, Profiled
from gpulab.features.goodput.marks import MarkedCalls
from gpulab.features.goodput.recorded_operations import RecordedWindow
from gpulab.features.goodput.recorded_operations import operations as operations_of
from gpulab.features.goodput.sampling import Sampler, lines_of, taken_s
from gpulab.features.goodput.work import WorkOfCalls
from gpulab.scenario import Variant
from gpulab.traces.trace import WINDOW, Trace, read

_MEMORY = present("memory.worker")  # before any process is forked
_JAX = present("jax.worker")

_WARM_S = 0.1
_GROUP_S, _PLAIN_GROUPS = 0.03, 5
_LONG_STEP_S = 0.2
_WINDOW_S, _EVENTS = 0.25, 10_000
"""A recording of short steps: a trace of more events takes longer to read than the steps took."""
_ENOUGH, _LONG_WINDOW_S, _MOST_EVENTS = 10, 1.5, 50_000
"""Of long steps, two or three of which are no sample."""
_MOST_STEPS = 200
_MOST_STATEFUL_STEPS = 20
"""Steps between two restores of state, which as a cache may be full after some."""
_MOST_WINDOWS = 2


@dataclass
class Profiler:
    """Records the variants named. What cannot be profiled is reported, and fails nothing."""

    _job: Measure | TimeFunctions
    _names: Sequence[str]
    _choices: Iterable[Choice]
    _reporter: Reporter
    _others_took_s: float = 0.0
    """Of the last recording, in which this thread could have run."""

    def prepare(self) -> None:
        """Open the device, run the file, start the profiler once, and derive the work of an
        operation once: each takes a second.
        """
        job = self._job
        self._options = job.profile or ProfileOptions()
        self._opened = open_job(job, self._choices, self._reporter)
        self._device = self._opened.device
        self._wait = self._opened.wait
        self._builder = self._opened.builder
        self._lab = self._builder.lab
        self._record(_nothing)
        torch.ones(1, device="meta") + 1  # imports sympy

    def serve(self) -> None:
        try:
            self._profile_all()
        finally:
            self._opened.close()

    def _profile_all(self) -> None:
        for name in self._names:
            self._reporter.stage(Stage.PROFILE, name)
            try:
                self._profile(self._opened.scenario.variants[name])
            except SkippedError:
                continue
            except BaseException as error:
                self._reporter.found(
                    findings.profiling_variant_failed(name, message=first_line(error))
                )
                forget(error)
            if not self._device_lives():
                self._reporter.found(findings.profiling_device_in_error())
                return
            compiled.reset()
            release_memory(self._device)

    def _device_lives(self) -> bool:
        """A CUDA error sticks to its process; the run was measured in another."""
        try:
            self._wait()
        except Exception:
            return False
        return True

    def _profile(self, variant: Variant) -> None:
        build = self._built(variant)
        try:
            self._say(variant, "timing steps without the profiler")
            warm = self._warm(build)
            plain = self._plain_steps(build, warm)
            single, _ = self._recorded(build, 1)
            steps = _window_steps(_middle_s(plain), single.size, stateful=bool(build.state))
            events = f" ({steps * single.size:,} events)"
            self._say(variant, "first recording", events)
            first, parts = self._window(build, steps, _middle_s(plain), shapes=False)
            plain += self._plain_steps(build, warm)  # the machine as it was while it recorded
            file = self._trace_file(variant.name)
            self._say(variant, "second recording, with shapes", events)
            second, parts_again = self._window(
                build, steps, _middle_s(plain), shapes=True, file=file
            )
            waited = None
            if self._device.type == "cpu":
                waited = median(group.waited for group in plain)
            with _collector_off():
                table = RecordedWindow(second, WorkOfCalls())
                operations = table.operations()
            jax = _JAX if "jax" in sys.modules else None
            of_jax: list[Trace] = []
            if jax is not None and not second.on_device:
                self._one_more(build, steps, within=jax.recorded(of_jax, self._written))
                operations = operations_of(of_jax[0]) if of_jax else operations
            profiled = Profiled(
                variant=variant.name,
                steps=steps,
                plain_s=_middle_s(plain),
                profiled_s=parts.window_s / steps,
                partition=parts,
                repeated=parts_again,
                operations=operations,
                repeatable=call_counts(first) == call_counts(second),
                trace=self._written,
                waited=waited,
            )
            self._reporter.channel.emit(profiled)
            if self._device.type == "cpu":
                self._say(variant, "recording with samples of its lines", events)
                sampler = Sampler()
                if trace := self._one_more(build, steps, within=sampler.running()):
                    ran_s = median(group.ran_s for group in plain) * steps
                    profiled = replace(profiled, lines=lines_of(sampler, trace, ran_s))
            self._say(variant, "recording a step with callers and memory")
            marks = None if is_compiled(first) else MarkedCalls()
            if sample := self._one_more(build, 1, shapes=True, memory=True, within=marks):
                with _collector_off():
                    table.take_callers(sample)
                    if not of_jax:
                        profiled = replace(profiled, operations=table.operations())
            self._reporter.channel.emit(profiled)
            if self._options.memory and _MEMORY is not None and self._device.type == "cuda":
                snapshot = f"{self._options.memory}-{variant.name}.pickle"
                _MEMORY.write_snapshot(build, snapshot)
                found = findings.memory_snapshot(variant.name, file=snapshot)
                self._reporter.found(found, explains=True)
            if self._options.memory and jax is not None:
                held = jax.memory_held(variant.name, self._options.memory)
                self._reporter.found(held, explains=True)
        finally:
            build.close()

    def _built(self, variant: Variant) -> Build:
        """After its first step; what memory it takes is told where that is measured."""
        if _MEMORY is not None:
            build, used = _MEMORY.build_and_weigh(self._builder, variant)
            self._reporter.channel.emit(used)
            return build  # type: ignore[no-any-return]
        build = self._builder.build(variant)
        try:
            self._builder.first_step(build)
        except BaseException:
            build.close()
            raise
        return build

    def _say(self, variant: Variant, what: str, events: str = "") -> None:
        """Announce the next part of a profile: with many operations a step it takes seconds."""
        self._reporter.stage(Stage.PROFILE, variant.name, detail=f"{what}{events}")

    def _one_more(self, build: Build, steps: int, **how: Any) -> Trace | None:
        """Another recording; None where that fails: what was measured has been reported by then."""
        try:
            trace, _ = self._recorded(build, steps, **how)
        except Exception as error:
            forget(error)
            return None
        return trace

    def _warm(self, build: Build) -> list[_Plain]:
        """Steps until it is warm, one by one."""
        started = perf_counter()
        steps: list[_Plain] = []
        with build.context():
            while not steps or perf_counter() - started < _WARM_S:
                build.restore()
                steps.append(_plain(build.work.step, 1, self._wait))
        return steps

    def _plain_steps(self, build: Build, warm: list[_Plain]) -> list[_Plain]:
        """Some groups of steps; where a step is long, those that were timed already are enough."""
        shortest_s = min(step.seconds for step in warm)
        if shortest_s > _LONG_STEP_S:
            return [*warm]
        group = max(1, min(_MOST_STATEFUL_STEPS, int(_GROUP_S / shortest_s)))
        groups = []
        with build.context():
            for _ in range(_PLAIN_GROUPS):
                build.restore()
                groups.append(_plain(build.work.step, group, self._wait))
        return groups

    def _window(
        self, build: Build, steps: int, plain_s: float, *, shapes: bool, file: Path | None = None
    ) -> tuple[Trace, Partition]:
        """A recording and its partition; another where the machine was too busy for it."""
        for _ in range(_MOST_WINDOWS):
            trace, times = self._recorded(build, steps, shapes=shapes)
            off_cpu = {}
            if self._device.type == "cpu":
                for name, wall_s in times.wall_s.items():
                    off_cpu[name] = max(0.0, wall_s - times.cpu_s[name])
            parts = partition(trace, off_cpu, self._others_took_s)
            if not is_disturbed(parts, steps, plain_s):
                break
        self._written = None
        if file:
            self._written = self._write(file)
        return trace, parts

    def _recorded(
        self,
        build: Build,
        steps: int,
        *,
        shapes: bool = False,
        memory: bool = False,
        within: AbstractContextManager[object] | None = None,
    ) -> tuple[Trace, PhaseTimes]:
        build.restore()
        step = build.work.step
        wait = self._wait

        def run() -> None:
            before_s = taken_s() or 0.0
            with within or nullcontext():
                _repeat(step, steps)
                wait()
            self._others_took_s = (taken_s() or 0.0) - before_s

        with build.context():
            step()
            wait()
            return self._record(run, shapes=shapes, memory=memory)

    def _record(
        self, run: Callable[[], None], *, shapes: bool = False, memory: bool = False
    ) -> tuple[Trace, PhaseTimes]:
        """Run it under the profiler; its trace, and the times of its phases meanwhile."""
        # what torch.profiler wraps: that imports the compiler first, 1 to 4 s, to know of its
        # graphs, and adds to a trace of several ranks which one it is
        recording = profile(
            use_device="cuda" if self._device.type == "cuda" else None,
            record_shapes=shapes,
            profile_memory=memory,
            use_kineto=True,
        )
        with recording, recorded(WINDOW):
            times = self._lab.phases.record(run, traced=True)
        with tempfile.TemporaryDirectory(dir=self._job.folder) as folder:
            exported = Path(folder) / "trace.json"
            recording.export_chrome_trace(str(exported))  # type: ignore[no-untyped-call]
            self._latest = exported.read_bytes()
        with _collector_off():
            return read(_document(self._latest)), times

    def _write(self, file: Path) -> str | None:
        """Keep a trace for a viewer; where it is, or None where it could not be written."""
        try:
            if file.exists() and b'"traceEvents"' not in file.read_bytes():
                raise FileExistsError(errno.EEXIST, "a file that is no trace is there")
            file.write_bytes(self._latest)
        except OSError as error:
            self._reporter.found(
                findings.trace_not_written(file=str(file), message=str(error.strerror))
            )
            return None
        return str(file)

    def _trace_file(self, name: str) -> Path | None:
        if self._options.trace is None:
            return None
        path = Path(self._options.trace)
        if len(self._job.subject.variants) == 1:
            return path
        return path.with_stem(f"{path.stem}-{file_name(name)}")


def _window_steps(plain_s: float, events: int, *, stateful: bool) -> int:
    """Return how many steps of so many events a recording has."""
    short = min(_WINDOW_S / plain_s, _EVENTS / max(1, events))
    long = min(_ENOUGH, _LONG_WINDOW_S / plain_s, _MOST_EVENTS / max(1, events))
    most = _MOST_STATEFUL_STEPS if stateful else _MOST_STEPS
    return max(1, min(most, int(max(short, long))))


class _Plain(NamedTuple):
    """Seconds a step takes without the profiler, and without others on its CPU; the share of its
    wall time in which it slept or waited; seconds of a step that its thread runs.
    """

    seconds: float
    waited: float
    ran_s: float


def _plain(step: Callable[[], object], count: int, wait: Callable[[], None]) -> _Plain:
    """Time `count` steps in a row."""
    before_s = taken_s() or 0.0
    ran_s = thread_time()
    started = perf_counter()
    _repeat(step, count)
    wait()
    wall_s = perf_counter() - started
    ran_s = thread_time() - ran_s
    others_s = (taken_s() or 0.0) - before_s
    waited_s = max(0.0, wall_s - ran_s - others_s)
    plain_s = (wall_s - min(others_s, wall_s / 2)) / count
    return _Plain(plain_s, min(1.0, waited_s / wall_s), ran_s / count)


def _middle_s(steps: Sequence[_Plain]) -> float:
    return median(step.seconds for step in steps)


def _repeat(step: Callable[[], object], count: int) -> None:
    for _ in range(count - 1):
        step()
    wait_for(step())


@contextmanager
def _collector_off() -> Iterator[None]:
    """Python's collector goes through a hundred thousand events again and again: 5x the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _document(data: bytes) -> object:
    """Decode the JSON of a trace; what is no strict JSON, such as a NaN, is read too."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)


def _nothing() -> None:
    pass
