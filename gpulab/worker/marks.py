"""Phases inside a step: which part of it the host, or the device, is in. Off wherever anything is timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter, thread_time
from typing import Any

import torch

from gpulab.model.goodput import UNMARKED
from gpulab.model.scenario import ScenarioError
from gpulab.model.trace import PREFIX

_NOTHING = nullcontext()


@dataclass(frozen=True)
class Taken:
    """Seconds between the marks of a window, by the innermost: on the step's clock, and on the CPU."""

    wall_s: dict[str, float]
    cpu_s: dict[str, float]


class Marks:
    """Collects the marks of a window. Nested and overlapping ones count once: the innermost has the time."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._on = self._traced = False
        self._thread = get_ident()
        self.used = False
        """Whether any step asked for a mark, on or off."""
        self._stack: list[_Mark] = []
        self._stream: torch.cuda.Stream | None = None
        self._turns: list[tuple[str, float, float, Any]] = []

    def phase(self, name: str) -> AbstractContextManager[Any]:
        if torch.compiler.is_compiling():
            return _NOTHING  # first: whether marks are on must be nothing that compiled code depends on
        self.used = True
        if not self._on or get_ident() != self._thread:
            return _NOTHING
        if not isinstance(name, str) or not name:
            raise ScenarioError(f"lab.phase({name!r}): a phase has a name, such as 'data'")
        if self._cuda and torch.cuda.is_current_stream_capturing():
            return _NOTHING
        return _Mark(self, name, traced=self._traced)

    def window(self, run: Callable[[], object], *, traced: bool = False) -> None:
        """Run something with marks on; `traced` puts them into a recording of the profiler as well.

        The profiler would record the events of a device's own clock too, so `traced` has the host's alone.
        """
        self._on, self._traced = True, traced
        self._stack, self._turns = [], []
        self._stream = torch.cuda.current_stream() if self._cuda and not traced else None
        self.turn()
        try:
            run()
        finally:
            self.turn()
            self._on = self._traced = False

    def enter(self, mark: _Mark) -> None:
        self.turn()
        self._stack.append(mark)

    def leave(self, mark: _Mark) -> None:
        """Not always the innermost: phases that are entered by hand may overlap."""
        self.turn()
        self._stack.remove(mark)

    def turn(self) -> None:
        """The time since the last turn belonged to the mark on top."""
        event = None
        if self._stream:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record(self._stream)  # of the window: those of side streams have an order of their own
        name = self._stack[-1].name if self._stack else UNMARKED
        self._turns.append((name, perf_counter(), thread_time(), event))

    def taken(self) -> Taken:
        """What the last window found."""
        wall: dict[str, float] = {}
        cpu: dict[str, float] = {}
        if self._stream:
            self._stream.synchronize()
        for (_, began, cpu_began, started), (name, ended, cpu_ended, event) in zip(
            self._turns, self._turns[1:], strict=False
        ):
            took = started.elapsed_time(event) * 1e-3 if self._stream else ended - began
            wall[name] = wall.get(name, 0.0) + took
            cpu[name] = cpu.get(name, 0.0) + cpu_ended - cpu_began
        self._turns = []
        return Taken(wall, cpu)


def recorded(name: str) -> AbstractContextManager[Any]:
    """A span in a recording of the profiler.

    Not by `record_function`: inside a recording each of those takes up to 0.3 ms, this 5 us.
    """
    return torch._C._profiler._RecordFunctionFast(name)


class _Mark:
    """One phase of one step."""

    def __init__(self, marks: Marks, name: str, *, traced: bool) -> None:
        self._marks, self.name = marks, name
        self._recorded = recorded(f"{PREFIX}{name}") if traced else None

    def __enter__(self) -> None:
        self._marks.enter(self)
        if self._recorded:
            self._recorded.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._recorded:
            self._recorded.__exit__(None, None, None)
        self._marks.leave(self)
