"""The `Lab` that variants build with, and the phases that it marks in a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter, thread_time
from typing import Any, NoReturn, Protocol

import torch

from gpulab.core.limits import NAME_LENGTH, NAMES, TEXT_LENGTH
from gpulab.core.machine import Device
from gpulab.core.payloads import TRACE_PREFIX, UNMARKED, USEFUL, Choice
from gpulab.engine.findings import skipped_by_variant
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.failure import SkippedError, short, text_of
from gpulab.features import taken_out
from gpulab.proc.nvtx_ranges import ranges
from gpulab.scenario import Param, ScenarioError, Work


class Names:
    """At most NAMES different texts of visible characters; ScenarioError for anything else."""

    def __init__(self, call: str, example: str) -> None:
        """`call`: what takes the names, as an author writes it."""
        self._call = call
        self._example = example
        self._taken: set[str] = set()

    def take(self, name: object) -> str:
        """The name as a plain string."""
        if isinstance(name, str):
            text = str.__str__(name)
            if text in self._taken:
                return text
            if 0 < len(text) <= NAME_LENGTH and text.isprintable() and not text.isspace():
                if len(self._taken) == NAMES:
                    raise ScenarioError(
                        f"{self._call}({short(text)}): a scenario has at most {NAMES} different "
                        "names of that kind"
                    )
                self._taken.add(text)
                return text
        raise ScenarioError(
            f"{self._call}({short(name)}): a name is a text of 1 to {NAME_LENGTH} visible "
            f"characters, such as {self._example!r}"
        )


_NO_CONTEXT = nullcontext()


@dataclass(frozen=True)
class PhaseTimes:
    """Seconds of the phases of a window, by the innermost: on the step's clock, and on the CPU."""

    wall_s: dict[str, float]
    cpu_s: dict[str, float]


class PhaseRecorder:
    """Records the phases of a window. Of nested and overlapping ones the innermost has the time."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._on = self._traced = False
        self._ranges = ranges()
        self._thread = get_ident()
        self.used = False
        """Whether any step asked for a phase, on or off."""
        self._names = Names("lab.phase", "data")
        self._stack: list[_Phase] = []
        self._stream: torch.cuda.Stream | None = None
        self._boundaries: list[tuple[str, float, float, Any]] = []
        """(phase that ends here, wall time, CPU time, event of the device)."""

    def phase(self, name: str) -> AbstractContextManager[Any]:
        if torch.compiler.is_compiling():
            # first: whether phases are on must be nothing that compiled code depends on
            return _NO_CONTEXT
        self.used = True
        if not self._on or get_ident() != self._thread:
            within = self._ranges and self._ranges.within
            return within(f"{TRACE_PREFIX}{name}") if within else _NO_CONTEXT
        name = self._names.take(name)
        if self._cuda and torch.cuda.is_current_stream_capturing():
            return _NO_CONTEXT
        span = recorded if self._traced else self._ranges and self._ranges.within
        return _Phase(self, name, span(f"{TRACE_PREFIX}{name}") if span else None)

    def record(self, run: Callable[[], object], *, traced: bool = False) -> PhaseTimes:
        """Run something with phases on; `traced` puts them into a recording of the profiler as
        well.

        The profiler would record the events of a device's own clock too, so `traced` has the host's
        alone.
        """
        self._on = True
        self._traced = traced
        self._stack = []
        self._boundaries = []
        self._stream = torch.cuda.current_stream() if self._cuda and not traced else None
        self._mark_boundary()
        try:
            run()
        finally:
            self._mark_boundary()
            self._on = self._traced = False
        return self._times()

    def enter(self, phase: _Phase) -> None:
        self._mark_boundary()
        self._stack.append(phase)

    def leave(self, phase: _Phase) -> None:
        """Not always the innermost: phases that are entered by hand may overlap."""
        self._mark_boundary()
        self._stack.remove(phase)

    def _mark_boundary(self) -> None:
        """The time since the last boundary belonged to the phase on top."""
        event = None
        if self._stream:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            # of the window: those of side streams have an order of their own
            event.record(self._stream)
        name = self._stack[-1].name if self._stack else UNMARKED
        self._boundaries.append((name, perf_counter(), thread_time(), event))

    def _times(self) -> PhaseTimes:
        wall_s: dict[str, float] = {}
        cpu_s: dict[str, float] = {}
        if self._stream:
            self._stream.synchronize()
        pairs = zip(self._boundaries, self._boundaries[1:], strict=False)
        for (_, start, cpu_start, start_event), (name, end, cpu_end, end_event) in pairs:
            seconds = start_event.elapsed_time(end_event) * 1e-3 if self._stream else end - start
            wall_s[name] = wall_s.get(name, 0.0) + seconds
            cpu_s[name] = cpu_s.get(name, 0.0) + cpu_end - cpu_start
        self._boundaries = []
        return PhaseTimes(wall_s, cpu_s)


def recorded(name: str) -> AbstractContextManager[Any]:
    """A span in a recording of the profiler.

    Not by `record_function`: inside a recording each of those takes up to 0.3 ms, this 5 us.
    """
    return torch._C._profiler._RecordFunctionFast(name)


class _Phase:
    def __init__(
        self, recorder: PhaseRecorder, name: str, span: AbstractContextManager[Any] | None
    ) -> None:
        self._recorder = recorder
        self.name = name
        self._span = span

    def __enter__(self) -> None:
        self._recorder.enter(self)
        if self._span:
            self._span.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._span:
            self._span.__exit__(None, None, None)
        self._recorder.leave(self)


class Chooser(Protocol):
    """Chooses for `gpulab.tune`; `seconds` is what that has taken so far."""

    seconds: float

    @property
    def choices(self) -> list[Choice]: ...

    def __call__(
        self, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]
    ) -> Work: ...


@dataclass(frozen=True)
class RankOfLab:
    """The number of this process among all, and torch's group of all of them."""

    rank: int = 0
    ranks: int = 1
    group: Any = None


class WorkerLab:
    def __init__(
        self,
        device: torch.device,
        info: Device,
        position: WorkerPosition,
        rank: RankOfLab | None = None,
    ) -> None:
        of = rank or RankOfLab()
        self.rank = of.rank
        self.ranks = of.ranks
        self.group = of.group
        self.device = device
        self.l2_bytes = info.l2_bytes
        self.memory_bytes = info.memory_bytes
        self.sms = info.sms
        self.info = info
        self.generator = torch.Generator(device)
        self.data_seed = 0
        """Of the builds of this process; those with other data have it too."""
        self.phases = PhaseRecorder(device)
        self.has_tuned = False
        """In the build that is under way."""
        self.tuner: Chooser | None = None
        """What chooses for `gpulab.tune`; set once there is something to measure with."""
        self.building: str | None = None
        """The variant whose build is under way: checks build others than the one at work."""
        self.figures: dict[tuple[str | None, str], float] = {}
        self._names = Names("lab.report", "tokens/s")
        self._position = position

    def phase(self, name: str) -> AbstractContextManager[Any]:
        return self.phases.phase(name)

    def useful(self) -> AbstractContextManager[Any]:
        return self.phases.phase(USEFUL)

    def report(self, name: str, value: float) -> None:
        """Kept until the end: a message from inside a timed step would be timed."""
        figure = self._names.take(name)
        try:
            number = float(value)
        except Exception:
            raise ScenarioError(
                f"lab.report({figure!r}, {short(value)}): a figure is a number"
            ) from None
        self.figures[self.building or self._position.variant, figure] = number

    @property
    def tuning_s(self) -> float:
        """Seconds that choosing has taken so far."""
        return self.tuner.seconds if self.tuner else 0.0

    def tune(self, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]) -> Work:
        if self.has_tuned:
            raise ScenarioError(
                "tune() is called twice: a variant chooses once, among all combinations"
            )
        self.has_tuned = True
        if self.tuner is None:
            raise ScenarioError(taken_out("tune()"))
        return self.tuner(candidates, make)

    def skip(self, reason: str) -> NoReturn:
        raise SkippedError(skipped_by_variant(reason=text_of(reason, most=TEXT_LENGTH)))
