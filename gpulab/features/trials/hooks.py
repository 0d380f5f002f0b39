"""A step with hooks on its parts: they are timed, or one of them is made longer, or all others are
whenever it has run (a virtual speedup, as in Coz).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isgenerator, signature
from threading import get_ident
from time import perf_counter, sleep, thread_time
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import get_worker_info
from torch.utils.data._utils import fetch as fetchers

from gpulab.core.jobs import Delay, PartKind
from gpulab.core.payloads import USEFUL
from gpulab.scenario import Work

Key = tuple[PartKind, str]

_SLOTS = 64
"""Of worker processes, beside one of the step's own."""
_FIELDS = 4
_OWED, _PASSES, _WALL, _CPU = range(_FIELDS)
_ARMED = _SLOTS * _FIELDS
_LEAST_DELAY_S = 5e-6
"""Shorter ones are saved up: each costs a microsecond that nobody asked for."""
_BLOCKED = 0.5
_BLOCKED_S = 50e-6
_LEAST_PAUSE_S = 20e-6
_BUSY = torch.linspace(0, 1, 2048)
_RESULT = torch.empty_like(_BUSY)
_SLEEP_LATE_S = 150e-6
_DEVICE_PARTS = (
    PartKind.PHASE,
    PartKind.COPIES,
    PartKind.FORWARD,
    PartKind.BACKWARD,
    PartKind.OPTIMIZER,
)
_CALIBRATED_CYCLES = 10_000_000


def hooked(
    function: Callable[..., Any] | None, hooks_of: Callable[[torch.device], Hooks]
) -> Callable[..., Any]:
    """A variant's function whose step has hooks on its parts."""
    assert function is not None

    def build(lab: Any, **parameters: Any) -> Any:
        hooks = hooks_of(lab.device)
        returned = function(HookedLab(lab, hooks), **parameters)
        if isgenerator(returned):
            return (hooks.of(work) for work in returned)
        return hooks.of(returned)

    build.__signature__ = signature(function)  # type: ignore[attr-defined]
    return build


class HookedLab:
    """The lab of a build, whose phases are parts."""

    def __init__(self, lab: Any, hooks: Hooks) -> None:
        self._lab = lab
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lab, name)

    @contextmanager
    def phase(self, name: str) -> Iterator[Any]:
        key = PartKind.PHASE, name
        with self._lab.phase(name) as entered:
            self._hooks.enter(key)
            try:
                yield entered
            finally:
                self._hooks.leave(key)

    def useful(self) -> AbstractContextManager[Any]:
        return self.phase(USEFUL)


class Hooks:
    """On the parts of one build's step. They do something while its context is entered."""

    def __init__(
        self, device: torch.device, delays: Sequence[Delay], *, recording: bool = False
    ) -> None:
        self.on_cuda = device.type == "cuda"
        self._delays = {delay.key: delay for delay in delays}
        self._virtual = any(delay.others for delay in delays)
        self._recording = recording
        self._debts: dict[Key, float] = {}
        self._paid: dict[int, float] = {}
        self._left: dict[int, tuple[float, float, float]] = {}
        """Of each thread: when it left a part, its CPU time then, and what was owed then."""
        # worker processes are forked later, and see what is written here
        self._shared = memoryview(mmap.mmap(-1, (_ARMED + 1) * 8)).cast("d")
        self._cycles_per_s = _cycles_per_s(device) if self.on_cuda else 0.0
        self.seen: dict[Key, Record] = {}
        self._began: dict[tuple[int, Key], tuple[float, float, Any]] = {}

    def of(self, work: Any) -> Any:
        """The work with these hooks; what is no work is returned as it is, for others to refuse."""
        if not isinstance(work, Work):
            return work
        key = PartKind.HOST, PartKind.HOST.value

        def hooked() -> Any:
            returned = work.step()
            self.leave(key)
            return returned

        step = hooked if key in self._delays else work.step
        return replace(work, step=step, context=partial(self._entered, work.context))

    @property
    def is_on(self) -> bool:
        return self._shared[_ARMED] > 0

    def enter(self, key: Key) -> None:
        if not self.is_on:
            return
        if self._virtual:
            self._pay()
        if self._recording:
            event = self._event()
            self._began[get_ident(), key] = perf_counter(), thread_time(), event

    def leave(self, key: Key) -> None:
        if not self.is_on:
            return
        if self._recording:
            self._record(key)
        delay = self._delays.get(key)
        if delay is None:
            return
        if delay.others and delay.seconds:
            self._owe(delay.seconds)
        elif self.on_cuda and key[0] in _DEVICE_PARTS:
            # one cycle where nothing is delayed, for a launch costs the host as much as a part
            cycles = max(1, int(delay.seconds * self._cycles_per_s))
            torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
        elif delay.seconds:
            self._lengthen(delay)
        if self._virtual:
            self._left[get_ident()] = perf_counter(), thread_time(), self._sum(_OWED)

    def worker_record(self) -> Record:
        """Return what loading took in worker processes."""
        return Record(self._sum(_PASSES), self._sum(_WALL), self._sum(_CPU))

    def clear(self) -> None:
        """Forget what was recorded."""
        self.seen.clear()
        for place in range(_ARMED):
            self._shared[place] = 0.0

    # --- what happens at a part -------------------------------------------------------------------

    def _lengthen(self, delay: Delay) -> None:
        debt = self._debts.get(delay.key, 0.0) + delay.seconds
        if debt >= _LEAST_DELAY_S:
            started = perf_counter()
            _pause(debt, busy=delay.busy)
            debt -= perf_counter() - started
        self._debts[delay.key] = debt

    def _owe(self, seconds: float) -> None:
        """Every other thread and process owes a pause as long as this part was made shorter."""
        self._shared[_slot() * _FIELDS + _OWED] += seconds
        lane = get_ident()
        self._paid[lane] = self._paid.get(lane, 0.0) + seconds

    def _sum(self, field: int) -> float:
        """Of all processes."""
        return sum(self._shared[field:_ARMED:_FIELDS].tolist())

    def _pay(self) -> None:
        """Pause as long as others have become shorter meanwhile. Who waited for somebody else was
        woken by one that has paid, and owes nothing of that time.
        """
        lane = get_ident()
        owed = self._sum(_OWED)
        paid = self._paid.get(lane)
        if paid is None:
            self._paid[lane] = owed
            return
        left = self._left.get(lane)
        if left is not None:
            wall_s = perf_counter() - left[0]
            cpu_s = thread_time() - left[1]
            if wall_s > _BLOCKED_S and cpu_s < _BLOCKED * wall_s:
                paid += owed - left[2]
        due = owed - paid
        if due > _LEAST_PAUSE_S:
            started = perf_counter()
            sleep(due)
            paid += perf_counter() - started
        self._paid[lane] = paid

    def _record(self, key: Key) -> None:
        began = self._began.pop((get_ident(), key), None)
        if began is None:
            return
        wall_s = perf_counter() - began[0]
        cpu_s = thread_time() - began[1]
        if get_worker_info() is not None:
            first = _slot() * _FIELDS
            self._shared[first + _PASSES] += 1
            self._shared[first + _WALL] += wall_s
            self._shared[first + _CPU] += cpu_s
            return
        record = self.seen.setdefault(key, Record())
        record.passes += 1
        record.wall_s += wall_s
        record.cpu_s += cpu_s
        record.threads.add(get_ident())
        if began[2] is not None:
            record.events.append((began[2], self._event()))

    def _event(self) -> Any:
        if not self.on_cuda or get_worker_info() is not None:
            return None
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _on_operation(self, func: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        key = PartKind.OPERATION, func._schema.name
        if key not in self._delays:
            return func(*args, **keywords)
        self.enter(key)
        returned = func(*args, **keywords)
        self.leave(key)
        return returned

    # --- while the step runs ----------------------------------------------------------------------

    @contextmanager
    def _entered(self, inner: Any) -> Iterator[None]:
        global _active
        kinds = {kind for kind, _ in self._delays}
        with ExitStack() as stack:
            if inner is not None:
                is_made = isinstance(inner, type) or not hasattr(inner, "__enter__")
                stack.enter_context(inner() if is_made else inner)
            if self._recording:
                kinds |= set(PartKind) - {PartKind.OPERATION}
            for kind, hooked in _HOOKED.items():
                if kind in kinds:
                    stack.enter_context(hooked(self))
            if PartKind.OPERATION in kinds:
                stack.enter_context(Operations(self._on_operation))
            self._debts.clear()
            self._paid.clear()
            self._left.clear()
            for slot in range(_SLOTS):
                self._shared[slot * _FIELDS + _OWED] = 0.0
            _active = self
            self._shared[_ARMED] = 1.0
            try:
                yield
            finally:
                self._shared[_ARMED] = 0.0


@dataclass
class Record:
    """Passes of a part, and what they took."""

    passes: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    threads: set[int] = field(default_factory=set)
    events: list[tuple[Any, Any]] = field(default_factory=list)

    @property
    def device_s(self) -> float:
        """On the device's clock; 0 without one. It has to be idle."""
        return sum(float(begin.elapsed_time(end)) for begin, end in self.events) * 1e-3


_active: Hooks | None = None
"""Those of the step that runs; in a worker process, of the step that started it."""


def _slot() -> int:
    """Return the slot of a worker process, or of the step's own one."""
    info = get_worker_info()
    return 0 if info is None else 1 + info.id % (_SLOTS - 1)


def _pause(seconds: float, *, busy: bool) -> None:
    """Sleep so long, or compute, mostly without the lock of the interpreter, which others may
    need.
    """
    end = perf_counter() + seconds
    if not busy and seconds > _SLEEP_LATE_S:
        sleep(seconds - _SLEEP_LATE_S)
    while busy and perf_counter() < end - _LEAST_DELAY_S:
        torch.sin(_BUSY, out=_RESULT)
    while perf_counter() < end:
        pass


def _cycles_per_s(device: torch.device) -> float:
    """Measure the cycles per second of `torch.cuda._sleep`, by the device's own clock."""
    with torch.cuda.device(device):
        begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        torch.cuda._sleep(_CALIBRATED_CYCLES)  # type: ignore[no-untyped-call]
        begin.record()
        torch.cuda._sleep(_CALIBRATED_CYCLES)  # type: ignore[no-untyped-call]
        end.record()
        end.synchronize()
        elapsed_s: float = begin.elapsed_time(end) * 1e-3
        return _CALIBRATED_CYCLES / elapsed_s


# --- hooks on what is no phase --------------------------------------------------------------------


def _hook_loading(_: Hooks) -> AbstractContextManager[None]:
    """Workers inherit the hook when they are forked, and keep it: it stays where it is."""
    for kind in (fetchers._MapDatasetFetcher, fetchers._IterableDatasetFetcher):
        if not hasattr(kind.fetch, "hooked"):
            setattr(kind, "fetch", _hooked_fetch(kind.fetch))  # noqa: B010
    return nullcontext()


def _hooked_fetch(fetch: Callable[..., Any]) -> Callable[..., Any]:
    key = PartKind.LOADING, PartKind.LOADING.value

    def hooked(self: Any, indices: Any) -> Any:
        hooks = _active
        if hooks is None:
            return fetch(self, indices)
        hooks.enter(key)
        try:
            return fetch(self, indices)
        finally:
            hooks.leave(key)

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


def _hook_forward(hooks: Hooks) -> AbstractContextManager[Any]:
    key = PartKind.FORWARD, PartKind.FORWARD.value
    depth = 0

    def before(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth == 1:
            hooks.enter(key)

    def after(*_: Any) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0:
            hooks.leave(key)

    module = torch.nn.modules.module
    return _removed(
        module.register_module_forward_pre_hook(before), module.register_module_forward_hook(after)
    )


def _hook_backward(hooks: Hooks) -> AbstractContextManager[Any]:
    key = PartKind.BACKWARD, PartKind.BACKWARD.value
    return _patched(torch.Tensor, "backward", hooks, key, lambda *_: True)


def _hook_optimizer(hooks: Hooks) -> AbstractContextManager[Any]:
    key = PartKind.OPTIMIZER, PartKind.OPTIMIZER.value
    return _removed(
        register_optimizer_step_pre_hook(lambda *_: hooks.enter(key)),
        register_optimizer_step_post_hook(lambda *_: hooks.leave(key)),
    )


def _hook_copies(hooks: Hooks) -> AbstractContextManager[Any]:
    key = PartKind.COPIES, PartKind.COPIES.value
    stack = ExitStack()
    for name in ("copy_", "to", "cuda", "cpu") if hooks.on_cuda else ():
        stack.enter_context(_patched(torch.Tensor, name, hooks, key, _crosses))
    return stack


def _removed(*handles: Any) -> AbstractContextManager[Any]:
    """Hooks that are there, and go at its end."""
    stack = ExitStack()
    for handle in handles:
        stack.callback(handle.remove)
    return stack


def _crosses(tensor: torch.Tensor, returned: Any, arguments: Sequence[Any]) -> bool:
    """Return whether a copy went from one kind of device to another."""
    tensors = [each for each in (returned, *arguments) if isinstance(each, torch.Tensor)]
    return any(each.device.type != tensor.device.type for each in tensors)


@contextmanager
def _patched(
    owner: Any, name: str, hooks: Hooks, key: Key, counts: Callable[..., bool]
) -> Iterator[None]:
    original = getattr(owner, name)
    is_own = name in vars(owner)

    def hooked(self: Any, *arguments: Any, **keywords: Any) -> Any:
        hooks.enter(key)
        returned = original(self, *arguments, **keywords)
        if counts(self, returned, arguments):
            hooks.leave(key)
        return returned

    setattr(owner, name, hooked)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, `around` is called in place of each operation, with it."""

    def __init__(self, around: Callable[[Any, Sequence[Any], dict[str, Any]], Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._around = around

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return self._around(func, args, kwargs or {})


_HOOKED: Mapping[PartKind, Callable[[Hooks], AbstractContextManager[Any]]] = {
    PartKind.LOADING: _hook_loading,
    PartKind.FORWARD: _hook_forward,
    PartKind.BACKWARD: _hook_backward,
    PartKind.OPTIMIZER: _hook_optimizer,
    PartKind.COPIES: _hook_copies,
}
