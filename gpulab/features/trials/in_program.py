"""Tries changes in the running loop of one process: windows of steps with and without one change,
in pairs in random order. A change is a delay of one part of a step (`--what-if`), or a switch of
torch or Python that is not on (`--try`).

Standard library only, for Python 3.9 and later, and torch where the program imported it. When all
changes are measured, everything that was wrapped or set is put back.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator
from functools import partial, wraps
from json import dumps
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulab.features.trials import delayed as parts
else:  # the agent has loaded it by this name
    import _gpulab_parts as parts

DELAYS, SWITCHES = "GPULAB_FOLLOW_WHAT_IF", "GPULAB_FOLLOW_TRY"
"""The variables with the names that were asked for; empty: all; not set: none."""
PART, FIX = "part", "fix"
_WARM_STEPS, _WARM_S = 3, 0.3
_WINDOW_S, _MOST_STEPS, _LONGEST_S = 0.25, 200, 1.0
_ROUNDS, _PAIRS_OF_ROUND, _ENOUGH, _NARROW = 3, 4, 8, 0.02
"""Pairs of each change in turn; from `_ENOUGH` on no more where all their ratios are so near."""
_DELAY = 0.15
"""Of a step."""
_WAITS = 0.1
"""Below this share of the CPU a part waits: its delay sleeps, and does not compute."""
_COMPILES = "the program compiles: its code is left alone"
_FUSED, _FOREACH = "fused", "foreach"
_KINDS = {"_single_tensor_": "for-loop", "_multi_tensor_": _FOREACH, "_fused_": _FUSED}
_OPTIMIZERS = {"Adam", "AdamW", "SGD"}
"""Those whose parameter groups may be switched between steps."""

_Plan = Generator[int, float, None]
"""Yields how many steps a window has; is sent the seconds of one of them."""


class Trials:
    """Of one process; `stepped` is called at the end of each of its steps."""

    def __init__(self, folder: str) -> None:
        self._folder, self._pid = folder, os.getpid()
        self._file = os.path.join(folder, f"{self._pid}-{os.urandom(4).hex()}.trials")
        self._delays, self._switches = _names(DELAYS), _names(SWITCHES)
        self._loading, self._optimizer = _Longer("loading"), _Longer("optimizer")
        self._seen = _Seen()
        self._watches = False
        self._changes: list[Any] = []
        self._active: Any = None
        self._undo: list[Callable[[], object]] = []
        self._mark: Any = None
        self._plan: Any = None
        self._wanted = self._steps = 0
        self._begun = 0.0
        self._done = False

    def watch_loading(self, module: Any) -> None:
        """`module` is torch.utils.data._utils.fetch, just imported: workers inherit the hook."""
        if self._delays is None:
            return
        for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
            kind = getattr(module, name, None)
            if kind is not None:
                kind.fetch = self._loading.part.around(kind.fetch)

    def watch_optimizers(self, module: Any) -> None:
        """`module` is torch.optim.optimizer, just imported. The hooks stay: torch walks over all of
        them as a step ends, and raises where one comes or goes meanwhile.
        """

        def before(optimizer: Any, *_: Any) -> None:
            if self._watches and not parts.is_compiling():
                self._seen.optimizers[id(optimizer)] = optimizer
                self._optimizer.part.enter()

        def after(*_: Any) -> None:
            if self._watches and not parts.is_compiling():
                self._optimizer.part.leave()

        if hasattr(module, "register_optimizer_step_pre_hook"):
            module.register_optimizer_step_pre_hook(before)
            module.register_optimizer_step_post_hook(after)

    def stepped(self, mark: Any, compiles: bool) -> None:
        """A step has ended. Where an error comes of this, all is put back first."""
        if self._done or os.getpid() != self._pid:
            return
        try:
            self._step(mark, compiles)
        except StopIteration:
            self._end()
        except Exception:
            self._end()
            raise

    def _step(self, mark: Any, compiles: bool) -> None:
        if (mark, compiles) != self._mark:
            self._put_back()
            self._mark, self._changes = (mark, compiles), []
            self._plan = self._trials(compiles)
            self._wanted, self._steps = next(self._plan), 0
            self._begun = perf_counter()
            return
        if self._active is not None:
            self._active.step_ended()
        self._steps += 1
        if self._steps < self._wanted and perf_counter() - self._begun < _LONGEST_S:
            return
        parts.synchronise()
        self._wanted = self._plan.send((perf_counter() - self._begun) / self._steps)
        self._steps = 0
        parts.synchronise()
        self._begun = perf_counter()
        for change in self._changes:
            change.window_begins()

    def _trials(self, compiles: bool) -> _Plan:
        """Warm up, look at some steps, then measure every change that applies."""
        steps, seconds = 0, 0.0
        while steps < _WARM_STEPS or seconds < _WARM_S:
            seconds += yield 1
            steps += 1
        ranks = os.environ.get("WORLD_SIZE", "1")
        if ranks != "1":
            kind = FIX if self._delays is None else PART
            why_not = f"{ranks} ranks: a change of one would measure the wait"
            self._changes = [_Change("all", why_not, kind)]
            self._write()
            return
        self._watches = not compiles
        longer, seen = self._longer(compiles), self._watch(compiles)
        self._changes = list(longer)
        for part in longer:
            part.window_begins()
        count = max(1, min(_MOST_STEPS, int(_WINDOW_S * steps / seconds)))
        step_s = yield count
        for part in longer:
            part.prepare(step_s, self._steps)
        self._changes += self._switched(seen)
        count = max(1, min(_MOST_STEPS, int(_WINDOW_S / step_s)))
        self._write()
        for _ in range(_ROUNDS):
            for change in self._changes:
                for _ in range(_PAIRS_OF_ROUND):
                    if not change.why_not and not change.is_enough():
                        yield from self._pair(change, count)

    def _pair(self, change: Any, count: int) -> _Plan:
        """One window as it is and one with the change. The first step of each is in none."""
        seconds = {}
        delay_s, part_s, holds = 0.0, 0.0, False
        changed_first = os.urandom(1)[0] % 2 == 0
        for changed in (changed_first, not changed_first):
            if changed:
                self._active = change
                change.on()
            yield 1
            seconds[changed] = yield count
            if changed:
                delay_s, _, holds = change.read()
                delay_s /= self._steps
                change.off()
                self._active = None
            else:
                part_s = change.read()[1] / self._steps
        change.pairs.append((seconds[False], seconds[True], delay_s, part_s, holds))
        self._write()

    def _longer(self, compiles: bool) -> list[Any]:
        """Hooks on the parts of a step."""
        if self._delays is None:
            return []
        torch = sys.modules["torch"]
        longer = [*map(self._named, self._delays), self._loading]
        own = forward, backward, _ = _Longer("forward"), _Longer("backward"), self._optimizer
        if compiles:
            longer += [_Change(part.name, _COMPILES, PART) for part in own]
        else:
            self._wrap(torch.nn.Module, "__call__", forward.part.around)
            self._wrap(torch.autograd, "backward", backward.part.around)
            longer += own
        if torch.cuda.is_initialized():
            longer.append(_Device("device", kind=PART))
        return longer

    def _named(self, name: str) -> Any:
        """A function of the program's main file, or a method of a class there."""
        owner: Any = sys.modules["__main__"]
        *path, last = name.split(".")
        for step in path:
            owner = getattr(owner, step, None)
        if not callable(getattr(owner, last, None)):
            return _Change(name, "the main file has no function of this name", PART)
        part = _Longer(name)
        self._wrap(owner, last, part.part.around)
        return part

    def _watch(self, compiles: bool) -> _Seen:
        """Hooks that see what switches ask for."""
        seen = self._seen
        seen.why_not = _COMPILES if compiles else ""
        if self._switches is None or compiles:
            return seen
        self._wrap(sys.modules["torch"].autograd, "backward", _after(seen.backward))
        for kind in ("adam", "adamw", "sgd"):
            module = sys.modules.get(f"torch.optim.{kind}")
            for prefix, word in _KINDS.items():
                if module is not None and hasattr(module, prefix + kind):
                    self._wrap(
                        module, prefix + kind, _after(partial(setattr, seen, "updates", word))
                    )
        return seen

    def _switched(self, seen: _Seen) -> list[Any]:
        """Those that were asked for."""
        asked = self._switches
        if asked is None:
            return []
        every = _every_switch(seen)
        unknown = [name for name in asked if name not in {each.name for each in every}]
        names = ", ".join(each.name for each in every)
        refused: list[Any] = [_Change(name, f"no such fix: {names}") for name in unknown]
        return refused + [each for each in every if not asked or each.name in asked]

    def _wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        self._undo.append(parts.wrap(owner, name, wrapper))

    def _put_back(self) -> None:
        if self._active is not None:
            self._active.off()
            self._active = None
        while self._undo:
            self._undo.pop()()

    def _end(self) -> None:
        self._done, self._watches = True, False
        self._seen.optimizers.clear()
        self._put_back()

    def _write(self) -> None:
        """All that is measured so far, in place of what was."""
        fields = ("kind", "name", "why_not", "was", "now", "alters", "pairs")
        changes = [{field: getattr(each, field) for field in fields} for each in self._changes]
        line = {"pid": self._pid, "changes": changes}
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(f"{self._file}.new", flags, 0o600)
        try:
            os.write(fd, dumps(line).encode())
        finally:
            os.close(fd)
        os.replace(f"{self._file}.new", self._file)


class _Change:
    """What is on in every other window. `was` and `now` prove it; `alters` says what else may
    change with it.
    """

    was = now = alters = ""

    def __init__(self, name: str, why_not: str = "", kind: str = FIX) -> None:
        self.name, self.why_not, self.kind = name, why_not, kind
        self.pairs: list[tuple[float, float, float, float, bool]] = []

    def is_enough(self) -> bool:
        ratios = [pair[1] / pair[0] for pair in self.pairs]
        return len(ratios) >= _ENOUGH and max(ratios) <= min(ratios) * (1 + 2 * _NARROW)

    def prepare(self, step_s: float, count: int) -> None: ...

    def on(self) -> None: ...

    def off(self) -> None: ...

    def step_ended(self) -> None: ...

    def window_begins(self) -> None: ...

    def read(self) -> tuple[float, float, bool]:
        """(seconds of delays and of the part in this window, whether the change is in effect)."""
        return 0.0, 0.0, True


class _Longer(_Change):
    """A part that is made longer while it is on."""

    def __init__(self, name: str) -> None:
        super().__init__(name, kind=PART)
        self.part = parts.Part()

    def window_begins(self) -> None:
        self.part.window_begins()

    def prepare(self, step_s: float, count: int) -> None:
        """Choose its delay, by a window of `count` steps."""
        passes = self.part.sum(parts.PASSES)
        if not passes:
            self.why_not = "no step calls it"
            return
        self._delay_s = _DELAY * step_s * count / passes
        self._busy = self.part.sum(parts.RAN) >= _WAITS * self.part.sum(parts.WALL)

    def on(self) -> None:
        self.part.be_longer(self._delay_s, busy=self._busy)

    def off(self) -> None:
        self.part.be_longer(0.0, busy=False)

    def read(self) -> tuple[float, float, bool]:
        return self.part.sum(parts.DELAYED), self.part.sum(parts.WALL), True


class _Device(_Change):
    """The work of a GPU: its stream waits at the end of each step, and the host does not."""

    def prepare(self, step_s: float, count: int) -> None:
        self._delay_s, self._slept = _DELAY * step_s, 0
        self._cycles = int(self._delay_s * parts.cycles_per_s())

    def step_ended(self) -> None:
        sys.modules["torch"].cuda._sleep(self._cycles)
        self._slept += 1

    def window_begins(self) -> None:
        self._slept = 0

    def read(self) -> tuple[float, float, bool]:
        return self._slept * self._delay_s, 0.0, True


class _Seen:
    """What the steps of a program show of it."""

    def __init__(self) -> None:
        self.optimizers: dict[int, Any] = {}
        self.anomaly: bool | None = None
        """Whether the newest backward looked for anomalies."""
        self.why_not = ""
        self.updates = ""
        """How the newest step of an optimizer was computed."""

    def backward(self) -> None:
        self.anomaly = sys.modules["torch"].is_anomaly_enabled()


def _after(note: Callable[[], None]) -> Callable[[Any], Any]:
    """A wrapper of functions, which run after `note`."""

    def around(function: Any) -> Any:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            note()
            return function(*args, **kwargs)

        return called

    return around


class _Switch(_Change):
    """A setting that is read back in the windows."""

    def __init__(
        self,
        name: str,
        read: Callable[[], Any],
        put: Callable[[Any], object],
        wanted: Any,
        alters: str = "",
        why_not: str = "",
    ) -> None:
        super().__init__(name, why_not)
        self._read, self._put, self._wanted, self.alters = read, put, wanted, alters
        self._before = read()
        self.was, self.now = str(self._before), str(wanted)
        if not why_not and self._before == wanted:
            self.why_not = f"in effect already: {wanted}"

    def on(self) -> None:
        self._put(self._wanted)

    def off(self) -> None:
        self._put(self._before)

    def read(self) -> tuple[float, float, bool]:
        return 0.0, 0.0, bool(self._read() == self._wanted)


def _every_switch(seen: _Seen) -> list[_Switch]:
    torch = sys.modules["torch"]
    cudnn = torch.backends.cudnn
    cores = len(os.sched_getaffinity(0))
    gpu = "" if torch.cuda.is_initialized() else "on a GPU only"
    rounding = "sums may be rounded in another order"
    bits = "products of fp32 have 10 bits of mantissa"
    convolutions = "convolutions may be rounded in another order"
    denormal = "denormal numbers become 0; tried in the loop's own thread only"
    nan = "NaN in a backward pass is not reported"
    anomaly = seen.why_not or ("" if seen.anomaly else "no backward looks for anomalies")
    precision = torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    benchmark = partial(getattr, cudnn, "benchmark"), partial(setattr, cudnn, "benchmark")
    flushes = torch.set_flush_denormal
    put_anomaly = _Anomaly(torch).put
    return [
        _Switch("threads", torch.get_num_threads, torch.set_num_threads, cores, rounding),
        _Switch("no_anomaly_detection", lambda: seen.anomaly, put_anomaly, False, nan, anomaly),
        _optimizer("fused_optimizer", seen, _FUSED, rounding),
        _optimizer("foreach_optimizer", seen, _FOREACH, ""),
        _Switch("gc_freeze", lambda: gc.get_freeze_count() > 0, _freeze, True),
        _Switch("flush_denormal", lambda: 5e-324 * 1.0 == 0.0, flushes, True, denormal),
        _Switch("tf32", *precision, "high", bits, gpu),
        _Switch("cudnn_benchmark", *benchmark, True, convolutions, gpu),
    ]


def _freeze(on: bool) -> None:
    if on:
        gc.freeze()
    else:
        gc.unfreeze()


class _Anomaly:
    """Keeps anomaly detection off, also where a `with` of each step turns it on."""

    def __init__(self, torch: Any) -> None:
        self._torch, self._set = torch, torch.set_anomaly_enabled
        self._was = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

    def put(self, value: Any) -> None:
        if value:
            self._torch.set_anomaly_enabled = self._set
            self._set(*self._was)
            return
        self._was = self._torch.is_anomaly_enabled(), self._torch.is_anomaly_check_nan_enabled()
        self._torch.set_anomaly_enabled = lambda mode, check_nan=True: None
        self._set(False)


def _optimizer(name: str, seen: _Seen, wanted: str, alters: str) -> _Switch:
    optimizers = list(seen.optimizers.values())
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    before = [{key: group.get(key) for key in (_FUSED, _FOREACH)} for group in groups]

    def put(value: str) -> None:
        for group, values in zip(groups, before):  # noqa: B905 (not in Python 3.9)
            group.update(values)
            if value == wanted:
                group.update({_FUSED: wanted == _FUSED, _FOREACH: wanted == _FOREACH})
        for optimizer in optimizers:
            _move_counts(optimizer, fused=value == _FUSED)

    why_not = seen.why_not or _why_not_switched(optimizers, groups)
    if not why_not and wanted == _FOREACH and seen.updates == _FUSED:
        why_not = "fused already"
    return _Switch(name, lambda: seen.updates, put, wanted, alters, why_not)


def _why_not_switched(optimizers: list[Any], groups: list[dict[str, Any]]) -> str:
    if not optimizers:
        return "no optimizer was seen"
    for optimizer in optimizers:
        kind = type(optimizer)
        if kind.__name__ not in _OPTIMIZERS or not kind.__module__.startswith("torch.optim"):
            return f"{kind.__name__} is not switched between steps: {', '.join(_OPTIMIZERS)} are"
    if any(group.get("capturable") or group.get("differentiable") for group in groups):
        return "capturable or differentiable"
    if all(_is_plain(each) for group in groups for each in group["params"]):
        return ""
    return "a parameter is not dense, real and floating-point"


def _is_plain(parameter: Any) -> bool:
    grad = parameter.grad
    return (
        parameter.is_floating_point()
        and parameter.device.type in ("cpu", "cuda")
        and (grad is None or not grad.is_sparse)
        and type(parameter.data) is sys.modules["torch"].Tensor
    )


def _move_counts(optimizer: Any, *, fused: bool) -> None:
    """Counts of steps lie beside the parameters of a fused optimizer, and else on the host."""
    for parameter, state in optimizer.state.items():
        count = state.get("step")
        if hasattr(count, "to") and parameter.device.type == "cuda":
            state["step"] = count.to(parameter.device if fused else "cpu")


def _names(variable: str) -> list[str] | None:
    text = os.environ.get(variable)
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
