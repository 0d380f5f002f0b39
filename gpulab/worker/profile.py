"""The second worker of a run: each variant again, under torch's profiler, which would slow whatever came after it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from msgspec.structs import replace
from torch.profiler import ProfilerActivity, profile

from gpulab.model.events import Noticed, Profiled
from gpulab.model.goodput import partition
from gpulab.model.operations import kernels, operations
from gpulab.model.request import RunRequest
from gpulab.model.scenario import Variant
from gpulab.model.trace import WINDOW, Trace, read, validate
from gpulab.worker import compiled
from gpulab.worker import device as devices
from gpulab.worker.build import Build, Builder
from gpulab.worker.channel import Channel
from gpulab.worker.lab import SkippedError, WorkerLab
from gpulab.worker.load import load
from gpulab.worker.marks import Taken, recorded
from gpulab.worker.report import Report
from gpulab.worker.warden import Where

_WARM_S, _GROUP_S, _WINDOW_S = 0.2, 0.03, 0.25
_ENOUGH, _LONG_WINDOW_S = 10, 1.5
"""Of long steps so many, while they take no longer than that: two or three are no sample."""
_MOST, _MOST_CHANGING = 200, 20
"""Steps between two puttings back of their state, where they have one: as a cache it may be full after some."""
_MOST_EVENTS = 60_000
"""A trace of more takes longer to read than the steps took."""
_PLAIN = 5


class Profiler:
    """One request, profiled. What cannot be profiled is said, and fails nothing: it has been measured by now."""

    def __init__(self, channel: Channel, request: RunRequest, where: Where) -> None:
        self._channel, self._request = channel, request
        self._report = Report(channel, request, where)
        device, found = devices.find(request.device, request.threads)
        self._device, self._wait = device, devices.waiter(device) or _nothing
        self._lab = WorkerLab(device, found, where)

    def serve(self) -> None:
        scenario = load(self._request)
        self._builder = Builder(self._lab, dict(self._request.params), self._request.seed, self._wait)
        self._record(lambda: None)  # the profiler's own first start takes a second
        for name in self._request.profiling:
            self._report.at("profile", name)
            try:
                self._one(scenario.variants[name])
            except SkippedError:
                continue
            except BaseException as error:
                why = (str(error) or type(error).__name__).partition("\n")[0]
                error.__traceback__ = None  # its frames hold tensors
                self._channel.emit(Noticed(text=f"{name} was measured, and could not be profiled: {why}"))
            if not self._device_lives():
                self._channel.emit(Noticed(text="the device is in error: nothing more could be profiled"))
                return
            compiled.reset()
            devices.release(self._device)

    def _device_lives(self) -> bool:
        """A CUDA error sticks to its process; the run was measured in another."""
        try:
            self._wait()
        except Exception:
            return False
        return True

    def _one(self, variant: Variant) -> None:
        build = self._builder.build(variant)
        try:
            self._builder.first_step(build)
            plain_s = self._plain_s(build)
            most = _MOST_CHANGING if build.state else _MOST
            one, _ = self._recorded(build, 1)
            wanted = max(int(_WINDOW_S / plain_s), min(_ENOUGH, int(_LONG_WINDOW_S / plain_s)))
            steps = max(1, min(most, wanted, _MOST_EVENTS // max(1, one.events)))
            first = one if steps == 1 else self._recorded(build, steps)[0]
            file = self._file(variant.name)
            second, taken = self._recorded(build, steps, file)
            off_cpu = {name: max(0.0, wall - taken.cpu_s[name]) for name, wall in taken.wall_s.items()}
            found = partition(second, off_cpu if self._device.type == "cpu" else {})
            told = Profiled(
                variant=variant.name,
                steps=steps,
                plain_s=plain_s,
                profiled_s=found.window_s / steps,
                partition=found,
                operations=operations(second),
                same=kernels(first) == kernels(second),
                trace=self._written,
            )
            self._channel.emit(told)
            if self._request.memory is not None:
                self._channel.emit(replace(told, peak_bytes=self._peak(build, variant.name)))
        finally:
            build.close()

    def _plain_s(self, build: Build) -> float:
        """Seconds a step takes without the profiler, once it is warm."""
        step, wait = build.work.step, self._wait
        started = perf_counter()
        times: list[float] = []
        with build.context():
            while not times or perf_counter() - started < _WARM_S:
                build.restore()
                times.append(_once_s(step, wait))
            each = max(1, min(_MOST_CHANGING, int(_GROUP_S / min(times))))
            if min(times) > _WARM_S:  # as dear as that, one step says it all
                return min(times)
            times = []
            for _ in range(_PLAIN):
                build.restore()
                times.append(_once_s(partial(_repeat, step, each), wait) / each)
        return median(times)

    def _recorded(self, build: Build, steps: int, file: Path | None = None) -> tuple[Trace, Taken]:
        build.restore()
        step, wait = build.work.step, self._wait

        def run() -> None:
            _repeat(step, steps)
            wait()

        with build.context():
            step()
            wait()
            return self._record(run, file)

    def _record(self, run: Callable[[], None], file: Path | None = None) -> tuple[Trace, Taken]:
        """Run it under the profiler; its trace, and what the marks found meanwhile."""
        kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self._device.type == "cuda" else [])
        with profile(activities=kinds, record_shapes=True) as recording, recorded(WINDOW):
            self._lab.marks.window(run, traced=True)
        taken = self._lab.marks.taken()
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "trace.json"
            recording.export_chrome_trace(str(written))
            found = written.read_bytes()
        document = json.loads(found)
        self._written = self._write(file, found, document) if file else None
        return read(document), taken

    def _write(self, file: Path, found: bytes, document: object) -> str | None:
        """Keep a trace for a viewer; where it is, or None where it is not."""
        for problem in validate(document):
            self._channel.emit(Noticed(text=f"{file}: a viewer may not draw all of it: {problem}"))
        try:
            file.write_bytes(found)
        except OSError as error:
            self._channel.emit(Noticed(text=f"the trace could not be written to {file}: {error.strerror}"))
            return None
        return str(file)

    def _file(self, name: str) -> Path | None:
        if self._request.trace is None:
            return None
        path = Path(self._request.trace)
        return path if len(self._request.variants) == 1 else path.with_stem(f"{path.stem}-{name}")

    def _peak_of_a_gpu(self, build: Build, snapshot: str) -> int:
        torch.cuda.memory._record_memory_history()
        try:
            torch.cuda.reset_peak_memory_stats(self._device)
            before = torch.cuda.memory_allocated(self._device)
            build.work.step()
            peak = int(torch.cuda.max_memory_allocated(self._device) - before)
            torch.cuda.memory._dump_snapshot(snapshot)  # type: ignore[no-untyped-call]
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
        self._channel.emit(Noticed(text=f"a snapshot of the device's memory: {snapshot} (pytorch.org/memory_viz)"))
        return peak

    def _peak(self, build: Build, name: str) -> int:
        """The most bytes that one step had allocated beyond what was there before it; on a GPU with a snapshot."""
        build.restore()
        with build.context():
            if self._device.type == "cuda":
                return self._peak_of_a_gpu(build, f"{self._request.memory}-{name}.pickle")
            return _allocated_on_a_cpu(build)


def _nothing() -> None:
    pass


def _once_s(work: Callable[[], object], wait: Callable[[], None]) -> float:
    started = perf_counter()
    work()
    wait()
    return perf_counter() - started


def _repeat(step: Callable[[], object], count: int) -> None:
    for _ in range(count):
        step()


def _allocated_on_a_cpu(build: Build) -> int:
    """By what torch's allocator tells the profiler: sizes of what it took and gave back, in order."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        build.work.step()
    total = most = 0
    assert recording.profiler is not None
    changes = [event for event in recording.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(changes, key=lambda event: event.start_ns()):
        total += event.nbytes()
        most = max(most, total)
    return most


def serve(channel: Channel, request: RunRequest, where: Where) -> None:
    """Profile what the request names; returns when the last event has left."""
    try:
        Profiler(channel, request, where).serve()
    except Exception as error:
        channel.emit(Noticed(text=f"nothing could be profiled: {error}"))
    compiled.end()
