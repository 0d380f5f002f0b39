"""The last process of a run: each variant again, under torch's profiler, which would slow whatever came after it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, thread_time
from typing import NamedTuple

from msgspec.structs import replace
from torch.profiler import ProfilerActivity, profile

from gpulab.analysis.goodput import partition
from gpulab.analysis.operations import call_counts, operations
from gpulab.analysis.side_streams import streams_not_joined
from gpulab.analysis.step_parts import is_disturbed
from gpulab.analysis.trace import WINDOW, Trace, read, validate
from gpulab.protocol.events import Examined, Profiled
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import Measure, ProfileOptions, ScenarioFile, TimeFunctions
from gpulab.protocol.partition import Partition
from gpulab.protocol.statuses import CheckKind, Stage
from gpulab.protocol.text import file_name
from gpulab.protocol.tuning import Choice
from gpulab.scenario import Variant
from gpulab.worker.building import compiled
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.building.lab import WorkerLab
from gpulab.worker.building.load import load
from gpulab.worker.building.phases import PhaseTimes, recorded
from gpulab.worker.process.device import open_device, waiter
from gpulab.worker.process.errors import SkippedError
from gpulab.worker.process.exception_text import first_line, forget
from gpulab.worker.process.memory import release
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.profiling.interpreting import interpreted_share
from gpulab.worker.profiling.memory_use import build_and_weigh
from gpulab.worker.profiling.peak_memory import peak_bytes
from gpulab.worker.timing.waiting import wait_for
from gpulab.worker.tuner import Tuner

_WARM_S, _GROUP_S, _WINDOW_S, _LONG_STEP_S = 0.1, 0.03, 0.25, 0.2
_ENOUGH, _LONG_WINDOW_S = 10, 1.5
"""Of long steps so many, while they take no longer than that: two or three are no sample."""
_FEWEST, _LONGEST_WINDOW_S, _WITHIN = 3, 3.0, 0.1
"""Of any steps so many, while they take no longer than that, and more until their spread makes the mean that unsure."""
_MOST_STEPS, _MOST_STATEFUL_STEPS = 200, 20
"""Steps between two restores of their state, where they have one: as a cache it may be full after some."""
_MOST_EVENTS = 10_000
"""A trace of more takes longer to read than the steps took."""
_MOST_EVENTS_NEEDED = 100_000
_MUCH_OUTSIDE = 0.2
_PLAIN_GROUPS = 5
_MOST_WINDOWS = 2
_WAITING_TIME = 1
"""Of the numbers of a thread's schedstat: nanoseconds in which it could have run, and another did."""


class Profiler:
    """Records the variants named. What cannot be profiled is reported, and fails nothing: it has been measured."""

    def __init__(
        self, job: Measure | TimeFunctions, names: Sequence[str], choices: Iterable[Choice], reporter: Reporter
    ) -> None:
        self._job, self._names, self._choices, self._reporter = job, names, choices, reporter
        self._options = job.profile or ProfileOptions()
        device, info = open_device(job.device, job.threads)
        self._device, self._wait = device, waiter(device) or _nothing
        self._lab = WorkerLab(device, info, reporter.position)

    def serve(self) -> None:
        job = self._job
        scenario = load(job.subject)
        params = dict(job.subject.params) if isinstance(job.subject, ScenarioFile) else {}
        self._builder = Builder(self._lab, params, job.seed or 0, self._wait)
        self._lab.tuner = Tuner(job, self._builder, self._reporter, None, self._choices, first=False)
        self._record(_nothing)  # the profiler's own first start takes a second
        for name in self._names:
            self._reporter.stage(Stage.PROFILE, name)
            try:
                self._profile(scenario.variants[name])
            except SkippedError:
                continue
            except BaseException as error:
                self._reporter.notice("profiling_variant_failed", name, message=first_line(error))
                forget(error)
            if not self._device_lives():
                self._reporter.notice("profiling_device_in_error")
                return
            compiled.reset()
            release(self._device)

    def _device_lives(self) -> bool:
        """A CUDA error sticks to its process; the run was measured in another."""
        try:
            self._wait()
        except Exception:
            return False
        return True

    def _profile(self, variant: Variant) -> None:
        build, memory = build_and_weigh(self._builder, variant)
        try:
            self._reporter.channel.emit(memory)
            warm = self._warm(build)
            plain = self._plain_steps(build, warm)
            single, _ = self._recorded(build, 1, shapes=False)
            steps = _window_steps(_middle_s(plain), _spread(warm), single, stateful=bool(build.state))
            first, parts = self._window(build, steps, _middle_s(plain), shapes=False)
            plain += self._plain_steps(build, warm)  # the machine as it was while it recorded
            file = self._trace_file(variant.name)
            second, parts_again = self._window(build, steps, _middle_s(plain), shapes=True, file=file)
            profiled = Profiled(
                variant=variant.name,
                steps=steps,
                plain_s=_middle_s(plain),
                profiled_s=parts.window_s / steps,
                partition=parts,
                repeated=parts_again,
                operations=operations(second),
                repeatable=call_counts(first) == call_counts(second),
                trace=self._written,
                waited=median(group.waited for group in plain) if self._device.type == "cpu" else None,
                interpreted=self._interpreted(build, parts),
            )
            self._reporter.channel.emit(profiled)
            if count := streams_not_joined(second):
                reason = finding("streams_not_joined", variant.name, count=count)
                examined = Examined(variant=variant.name, check=CheckKind.STREAMS, ok=False, reason=reason)
                self._reporter.channel.emit(examined)
            if self._options.memory is not None:
                snapshot = f"{self._options.memory}-{variant.name}.pickle"
                peak = peak_bytes(build, self._device, snapshot)
                if self._device.type == "cuda":
                    self._reporter.explain("memory_snapshot", variant.name, file=snapshot)
                self._reporter.channel.emit(replace(profiled, peak_bytes=peak))
        finally:
            build.close()

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

    def _interpreted(self, build: Build, parts: Partition) -> float | None:
        """Of a CPU whose time is not torch's; a step that changes its state may not do the same again and again."""
        if self._device.type != "cpu" or build.state or parts.shares.get("other", 0.0) < _MUCH_OUTSIDE:
            return None
        with build.context():
            return interpreted_share(build.work.step)

    def _window(
        self, build: Build, steps: int, plain_s: float, *, shapes: bool, file: Path | None = None
    ) -> tuple[Trace, Partition]:
        """A recording of some steps and its partition; another one where the machine was too busy for the first."""
        for _ in range(_MOST_WINDOWS):
            trace, times = self._recorded(build, steps, shapes=shapes)
            off_cpu = {name: max(0.0, wall_s - times.cpu_s[name]) for name, wall_s in times.wall_s.items()}
            parts = partition(trace, off_cpu if self._device.type == "cpu" else {}, plain_s * steps)
            if not is_disturbed(parts, steps, plain_s):
                break
        self._written = self._write(file, *self._latest) if file else None
        return trace, parts

    def _recorded(self, build: Build, steps: int, *, shapes: bool) -> tuple[Trace, PhaseTimes]:
        build.restore()
        step, wait = build.work.step, self._wait

        def run() -> None:
            _repeat(step, steps)
            wait()

        with build.context():
            step()
            wait()
            return self._record(run, shapes=shapes)

    def _record(self, run: Callable[[], None], *, shapes: bool = False) -> tuple[Trace, PhaseTimes]:
        """Run it under the profiler; its trace, and the times of its phases meanwhile."""
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self._device.type == "cuda" else [])
        with profile(activities=activities, record_shapes=shapes) as recording, recorded(WINDOW):
            times = self._lab.phases.record(run, traced=True)
        with tempfile.TemporaryDirectory(dir=self._job.folder) as folder:
            exported = Path(folder) / "trace.json"
            recording.export_chrome_trace(str(exported))
            data = exported.read_bytes()
        document = json.loads(data)
        self._latest = data, document
        return read(document), times

    def _write(self, file: Path, data: bytes, document: object) -> str | None:
        """Keep a trace for a viewer; where it is, or None where it could not be written."""
        for problem in validate(document):
            self._reporter.notice(problem.code, file=str(file), **problem.values)
        try:
            file.write_bytes(data)
        except OSError as error:
            self._reporter.notice("trace_not_written", file=str(file), message=str(error.strerror))
            return None
        return str(file)

    def _trace_file(self, name: str) -> Path | None:
        if self._options.trace is None:
            return None
        path = Path(self._options.trace)
        return path if len(self._job.subject.variants) == 1 else path.with_stem(f"{path.stem}-{file_name(name)}")


def _window_steps(plain_s: float, spread: float | None, single: Trace, *, stateful: bool) -> int:
    """How many steps a recording should have: those that fill it, and as many as their spread needs."""
    events = max(1, single.size)
    enough = max(int(_WINDOW_S / plain_s), min(_ENOUGH, int(_LONG_WINDOW_S / plain_s)))
    needed = _ENOUGH if spread is None else ceil((spread / _WITHIN) ** 2)
    needed = min(max(_FEWEST, needed), int(_LONGEST_WINDOW_S / plain_s), _MOST_EVENTS_NEEDED // events)
    most = _MOST_STATEFUL_STEPS if stateful else _MOST_STEPS
    return max(1, min(most, max(needed, min(enough, _MOST_EVENTS // events))))


def _spread(steps: Sequence[_Plain]) -> float | None:
    """The interquartile range of their times over the median; None of too few."""
    if len(steps) < _FEWEST:
        return None
    low, middle, high = quantiles([step.seconds for step in steps], n=4)
    return (high - low) / middle


class _Plain(NamedTuple):
    """Seconds a step takes without the profiler, and without others on its CPU; the share of its wall time in which it
    slept or waited."""

    seconds: float
    waited: float


def _plain(step: Callable[[], object], count: int, wait: Callable[[], None]) -> _Plain:
    """Of so many steps in a row."""
    taken_s, ran_s, started = _taken_s(), thread_time(), perf_counter()
    _repeat(step, count)
    wait()
    wall_s, ran_s, taken_s = perf_counter() - started, thread_time() - ran_s, _taken_s() - taken_s
    waited_s = max(0.0, wall_s - ran_s - taken_s)
    return _Plain((wall_s - min(taken_s, wall_s / 2)) / count, min(1.0, waited_s / wall_s))


def _middle_s(steps: Sequence[_Plain]) -> float:
    return median(step.seconds for step in steps)


def _taken_s() -> float:
    """Seconds in which this thread waited for a CPU so far; 0 where the system does not count them."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[_WAITING_TIME]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def _repeat(step: Callable[[], object], count: int) -> None:
    for _ in range(count - 1):
        step()
    wait_for(step())


def _nothing() -> None:
    pass
