"""A step with hooks on its parts: they are timed, or one of them is made longer, or all others are
whenever it has run (a virtual speedup, as in Coz).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
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
from torch.utils.data._utils import fetch as fetchers

from gpulab.core.jobs import Delay, PartKind
from gpulab.core.payloads import USEFUL
from gpulab.features.trials.delayed import (
    SLOTS,
    Part,
    cycles_per_s,
    shared,
    slot,
    wrap,
)
from gpulab.scenario import Work

Key = tuple[PartKind, str]

_BLOCKED = 0.5
_BLOCKED_S = 50e-6
_LEAST_PAUSE_S = 20e-6
_DEVICE_PARTS = (
    PartKind.PHASE,
    PartKind.COPIES,
    PartKind.FORWARD,
    PartKind.BACKWARD,
    PartKind.OPTIMIZER,
)


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
        with self._lab.phase(name) as entered, self._hooks.within((PartKind.PHASE, name)):
            yield entered

    def useful(self) -> AbstractContextManager[Any]:
        return self.phase(USEFUL)


class Hooks:
    """On the parts of one build's step. They do something while its context is entered."""

    def __init__(
        self, device: torch.device, delays: Sequence[Delay], *, recording: bool = False
    ) -> None:
        self.on_cuda = device.type == "cuda"
        self._delays = {delay.key: delay for delay in delays}
        self._debts = _Debts() if any(delay.others for delay in delays) else None
        self._kinds = {kind for kind, _ in self._delays} | set(_HOOKED if recording else ())
        # worker processes are forked later, and see what is written here
        self._armed = shared(1)
        self._cycles_per_s = cycles_per_s() if self.on_cuda else 0.0
        self._recording = recording
        self.parts: dict[Key, Part] = {}
        for kind in _HOOKED:
            self._part((kind, kind.value))
        for delay in delays:
            if not delay.others:
                self._part(delay.key).be_longer(delay.seconds, busy=delay.busy)

    def of(self, work: Any) -> Any:
        """The work with these hooks; what is no work is returned as it is, for others to refuse."""
        if not isinstance(work, Work):
            return work

        def hooked() -> Any:
            returned = work.step()
            with self.within((PartKind.HOST, PartKind.HOST.value)):
                return returned

        step = hooked if PartKind.HOST in self._kinds else work.step
        return replace(work, step=step, context=partial(self._entered, work.context))

    def enter(self, key: Key) -> None:
        if not self._armed[0]:
            return
        if self._debts is not None:
            self._debts.pay()
        self._part(key).enter()

    def leave(self, key: Key) -> None:
        if not self._armed[0]:
            return
        self._part(key).leave()
        if self._debts is not None:
            delay = self._delays.get(key)
            self._debts.left(delay.seconds if delay is not None and delay.others else 0.0)

    @contextmanager
    def within(self, key: Key) -> Iterator[None]:
        """One pass of a part."""
        self.enter(key)
        try:
            yield
        finally:
            self.leave(key)

    def around(self, key: Key, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function whose calls are passes of a part."""

        def called(*arguments: Any, **keywords: Any) -> Any:
            with self.within(key):
                return function(*arguments, **keywords)

        return called

    def clear(self) -> None:
        """Forget what was recorded."""
        for part in self.parts.values():
            part.window_begins()

    def _part(self, key: Key) -> Part:
        part = self.parts.get(key)
        if part is None:
            part = Part()
            if self.on_cuda and (self._recording or key[0] in _DEVICE_PARTS):
                part = OnDevice(self._cycles_per_s, recording=self._recording)
            self.parts[key] = part
        return part

    def _on_operation(self, func: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        key = PartKind.OPERATION, func._schema.name
        if key not in self._delays:
            return func(*args, **keywords)
        with self.within(key):
            return func(*args, **keywords)

    @contextmanager
    def _entered(self, inner: Any) -> Iterator[None]:
        global _active
        with ExitStack() as stack:
            if inner is not None:
                is_made = isinstance(inner, type) or not hasattr(inner, "__enter__")
                stack.enter_context(inner() if is_made else inner)
            for kind, hook in _HOOKED.items():
                if kind in self._kinds:
                    for undo in hook(self, (kind, kind.value)):
                        stack.callback(undo)
            if PartKind.OPERATION in self._kinds:
                stack.enter_context(Operations(self._on_operation))
            if self._debts is not None:
                self._debts.clear()
            _active = self
            self._armed[0] = 1.0
            try:
                yield
            finally:
                self._armed[0] = 0.0


class OnDevice(Part):
    """A part of a step on a GPU: timed there where it is recorded, and else made longer there."""

    def __init__(self, cycles_per_s: float, *, recording: bool) -> None:
        super().__init__()
        self._cycles_per_s = cycles_per_s
        self._recording = recording
        self._begun: dict[int, Any] = {}
        self._events: list[tuple[Any, Any]] = []

    @property
    def device_s(self) -> float:
        """On the device's clock, which has to be idle."""
        return sum(float(begin.elapsed_time(end)) for begin, end in self._events) * 1e-3

    def enter(self) -> None:
        super().enter()
        if self._recording and not slot():
            self._begun[get_ident()] = _event()

    def leave(self) -> None:
        super().leave()
        begun = self._begun.pop(get_ident(), None)
        if begun is not None:
            self._events.append((begun, _event()))

    def window_begins(self) -> None:
        super().window_begins()
        self._events.clear()

    def _lengthen(self, delay_s: float) -> None:
        # one cycle where nothing is delayed, for a launch costs the host as much as a part
        if not self._recording:
            cycles = max(1, int(delay_s * self._cycles_per_s))
            torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]


class _Debts:
    """What threads and processes owe: a pause as long as a part of another one was made shorter."""

    def __init__(self) -> None:
        self._owed = shared(SLOTS)
        """By processes."""
        self._paid: dict[int, float] = {}
        self._left: dict[int, tuple[float, float, float]] = {}
        """Of each thread: when it left a part, its CPU time then, and what was owed then."""

    def clear(self) -> None:
        self._paid.clear()
        self._left.clear()
        for place in range(SLOTS):
            self._owed[place] = 0.0

    def left(self, seconds: float) -> None:
        """This thread has left a part, for which all others owe so long."""
        thread = get_ident()
        self._owed[slot()] += seconds
        self._paid[thread] = self._paid.get(thread, 0.0) + seconds
        self._left[thread] = perf_counter(), thread_time(), sum(self._owed)

    def pay(self) -> None:
        """Pause as long as others have become shorter meanwhile. Who waited for somebody else was
        woken by one that has paid, and owes nothing of that time.
        """
        thread = get_ident()
        owed = sum(self._owed)
        paid = self._paid.get(thread)
        if paid is None:
            self._paid[thread] = owed
            return
        left = self._left.get(thread)
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
        self._paid[thread] = paid


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


# --- hooks on what is no phase: each is put in, and yields what takes it away --------------------

_active: Hooks | None = None
"""Those of the step that runs; in a worker process, of the step that started it."""
_Undo = Callable[[], object]


def _hook_loading(_: Hooks, key: Key) -> Iterator[_Undo]:
    """Workers inherit the hook when they are forked, and keep it: it stays where it is."""

    def around(fetch: Callable[..., Any]) -> Callable[..., Any]:
        def hooked(self: Any, indices: Any) -> Any:
            if _active is None:
                return fetch(self, indices)
            with _active.within(key):
                return fetch(self, indices)

        hooked.hooked = True  # type: ignore[attr-defined]
        return hooked

    for kind in (fetchers._MapDatasetFetcher, fetchers._IterableDatasetFetcher):
        if not hasattr(kind.fetch, "hooked"):
            wrap(kind, "fetch", around)
    yield from ()


def _hook_forward(hooks: Hooks, key: Key) -> Iterator[_Undo]:
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
    yield module.register_module_forward_pre_hook(before).remove
    yield module.register_module_forward_hook(after).remove


def _hook_backward(hooks: Hooks, key: Key) -> Iterator[_Undo]:
    yield wrap(torch.autograd, "backward", partial(hooks.around, key))


def _hook_optimizer(hooks: Hooks, key: Key) -> Iterator[_Undo]:
    yield register_optimizer_step_pre_hook(lambda *_: hooks.enter(key)).remove
    yield register_optimizer_step_post_hook(lambda *_: hooks.leave(key)).remove


def _hook_copies(hooks: Hooks, key: Key) -> Iterator[_Undo]:
    """On those from one kind of device to another."""

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(self: Any, *arguments: Any, **keywords: Any) -> Any:
            hooks.enter(key)
            returned = function(self, *arguments, **keywords)
            tensors = [each for each in (returned, *arguments) if isinstance(each, torch.Tensor)]
            if any(each.device.type != self.device.type for each in tensors):
                hooks.leave(key)
            return returned

        return called

    for name in ("copy_", "to", "cuda", "cpu") if hooks.on_cuda else ():
        yield wrap(torch.Tensor, name, around)


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, `around` is called in place of each operation, with it."""

    def __init__(self, around: Callable[[Any, Sequence[Any], dict[str, Any]], Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._around = around

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return self._around(func, args, kwargs or {})


_HOOKED: Mapping[PartKind, Callable[[Hooks, Key], Iterator[_Undo]]] = {
    PartKind.LOADING: _hook_loading,
    PartKind.FORWARD: _hook_forward,
    PartKind.BACKWARD: _hook_backward,
    PartKind.OPTIMIZER: _hook_optimizer,
    PartKind.COPIES: _hook_copies,
}
