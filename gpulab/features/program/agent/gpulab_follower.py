"""Follows the steps of one process of a program, from within: windows of them are timed, and some
are recorded by torch's profiler.

A step ends where `gpulab.step()` is called; without such calls where the first optimizer that steps
has stepped; and where there is no optimizer, with the outermost call of a module. Between windows a
line is written to a file of this process, so that whatever ends it leaves what was measured.

Standard library only, for Python 3.9 and later, and torch where the program imported it. Nothing
here may raise into the program, print, or leave a thread behind.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from functools import wraps
from importlib.util import module_from_spec, spec_from_file_location
from math import exp, inf, log
from threading import get_ident
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any, NamedTuple
from weakref import ref

CALL, OPTIMIZER, MODULE = "gpulab.step", "optimizer", "module"
_RANKS = {MODULE: 0, OPTIMIZER: 1, CALL: 2}
"""What takes precedence over what."""
FIRST, WARM_UP, PLAIN, PROFILED = "first", "warm-up", "plain", "profiled"
WINDOW = "gpulab:window"
_PROFILE = "GPULAB_FOLLOW_PROFILE"
"""The variable that says whether to record: on, or off."""

_CHOOSING = 10
"""Outermost calls of modules until it is clear which of them are steps."""
_CALL_HOLDERS = ("torch._dynamo.utils", "torch._dynamo.variables.nn_module")
"""Where Dynamo keeps the call of a module that nobody changed."""
_WRAPPED_CALL = ("_compiled_call_impl", "_call_impl")
"""All that the call of a module of torch 2 refers to."""
_MARKING_S, _MOST_MARKS = 0.1, 200
"""Seconds of warm-up, and marks, over which the marks are timed."""
_WARM_STEPS, _WARM_S, _WARM_MOST_S = 3, 0.3, 10.0
_WINDOW_S, _FEWEST, _MOST_STEPS, _LONGEST_WINDOW_S = 0.25, 3, 200, 3.0
_PLAIN_BEFORE, _PLAIN_BEFORE_ON_DEVICE = 3, 8
_COST_PAIRS = 7
"""With the first recording that is eight windows: the fewest whose range holds their median at
99 %.
"""
_MOST_EVENTS = 10_000
"""A recording of more takes longer to read than its steps took."""
_BYTES_OF_EVENT = 300
_LATER_S, _LATER_MOST_S = 1.0, 10.0
_GROWTH = 1.2
"""Of the windows when nothing is recorded any more, so that a day of them is no large file."""
_MOST_STEPS_LATER = 100_000
_MOST_SINGLE = 2_000
"""Steps of a window that are kept one by one: of more, some from all over it stand for all. Of
100,000 the reading took 40 ms.
"""
_GOLDEN = 0.6180339887498949
_BIN = log(1.01)
_TEARDOWN = "TEARDOWN_CUPTI"
"""With 1 Kineto takes CUPTI out of the process as a recording ends. It must be set before CUDA
starts. Without it the steps of a program that launches many small kernels took 18 to 25 % longer
for ever after a first recording, on an H100. torch refuses it with CUDA graphs before CUDA 12.6.
"""
_TEARDOWN_FROM = (12, 6)


class _Window(NamedTuple):
    """Steps until there are `least`, and then `most` or `seconds` of them. `recording` names what
    the profiler is to keep; None: a window without it.
    """

    kind: str
    least: int
    most: int
    seconds: float
    recording: str | None = None
    synchronised: bool = False


class _Done(NamedTuple):
    """A window that is over: its steps, their seconds, and the file of its recording."""

    steps: int
    seconds: float
    file: str | None

    @property
    def step_s(self) -> float:
        return max(self.seconds / self.steps, 1e-9)


_Plan = Generator[_Window, _Done, None]


def _nothing(*_: Any) -> None:
    return None


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _never_compiled(function: Any) -> bool:
    """Keep Dynamo from the frames of a function, as of torch's own call of a module: what they call
    it compiles. Whether this torch can do so.
    """
    frames: Any = sys.modules.get("torch._C._dynamo.eval_frame")
    if hasattr(frames, "skip_code"):
        frames.skip_code(function.__code__)
        return True
    if not hasattr(frames, "set_code_exec_strategy"):
        return False
    action = frames._FrameAction
    skip = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
    frames.set_code_exec_strategy(function.__code__, skip)
    return True


def _holds(module: Any, kind: type) -> bool:
    """Whether a module of another class has one of that class within it."""
    if module is None or type(module) is kind:
        return False
    return any(type(each) is kind for each in module.modules())


class Follower:
    """Of one process. The methods that the program's hooks call never raise."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._started = perf_counter()
        self._rank = _rank()
        self._records = os.environ.get(_PROFILE) == "on" and not self._rank
        self._arrivals: Any = None
        """Of a rank of a job of several."""
        self._fd: int | None = None
        self._off = False
        self._mark: str | None = None
        self._thread = 0
        self._optimizer: Any = None
        self._optimizers: Any = None
        self._module_class: Any = None
        self._call: Any = None
        self._own_call: Any = None
        self._depth = 0
        self._calls: Counter[type] = Counter()
        self._outermost: list[Any] = []
        """The modules that were called until it was clear which class of them is a step."""
        self._step_class: Any = None
        self._told_of_compiling = self._has_compiled = False
        self._hooked = False
        """Whether that class alone has a hook, instead of all modules."""
        self._child = False
        self._plan: _Plan = _everything(records=self._records)
        self._window = next(self._plan)
        self._stamps: list[float] = []
        """When each step of the window ended. It stays the same list."""
        self._limit = 0.0
        self._most = 0
        """From when, and from how many steps on, the window may be over."""
        self._begun = self._ran = 0.0
        self._between_s = 0.0
        self._marking_s: float | None = None
        """What marking a step takes; None until it has been measured."""
        self._costs: list[float] = []
        self._untime: Callable[[], None] | None = None
        self._recorder: _Recorder | None = None
        self._recordings = 0
        self._attached = False
        """Whether CUPTI, which makes every launch longer, stays in the process."""
        self._compiled: tuple[int, float] | None = None
        """What torch had compiled when the window began."""
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)

    # what the program's own code reaches

    def watch_optimizers(self, module: ModuleType) -> None:
        """`module` is torch.optim.optimizer, just imported."""
        self._say_torch()
        if self._arrivals is not None:
            self._arrivals.watch_optimizers(module)
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is not None:
            self._optimizers = register(self._optimizer_stepped)

    def watch_compiler(self, module: ModuleType) -> None:
        """`module` is torch._dynamo.callback, just imported. What is compiled may have the hook of
        a class in it, and a graph that must be whole would break there. A hook on all modules is
        what Dynamo takes for the call that nobody changed.
        """
        handler = module.callback_handler
        run = handler.run_start_callbacks

        def unhooked_first(*args: Any) -> Any:
            self._compiles()
            return run(*args)

        handler.run_start_callbacks = unhooked_first  # clear() would forget a callback
        self._told_of_compiling = True

    def _compiles(self) -> None:
        """Something is about to be compiled."""
        self._has_compiled = True
        if self._arrivals is not None:
            self._arrivals.compiles()
        if not self._hooked:
            return
        try:
            self._unhook_class()
            self._module_class.__call__ = self._own_call
            for name in _CALL_HOLDERS:
                if name in sys.modules:
                    sys.modules[name].unpatched_nn_module_call = self._own_call  # type: ignore[attr-defined]
        except Exception:
            self._stop()

    def watch_modules(self, module: ModuleType) -> None:
        """`module` is torch.nn.modules.module, just imported: wrap the call of every module, until
        there is a better mark of steps.
        """
        self._say_torch()
        self._module_class = module.Module
        self._call = module.Module.__call__
        self._own_call = self._outermost_marked(self._call)
        module.Module.__call__ = self._own_call

    def _outermost_marked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, of any module, which tells of those that no other module makes."""
        follower = self

        @wraps(call)
        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            if follower._depth or follower._thread not in (0, get_ident()):
                return call(module, *args, **kwargs)
            follower._depth = 1
            try:
                return call(module, *args, **kwargs)
            finally:
                follower._depth = 0
                follower._module_called(module)

        return called

    def _marked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call of a module that has none of its own, with a step at its end. It does what
        `call`, that of all modules, would do: one more Python function took 5 % of a small one.
        """
        follower, stamps, append, clock = self, self._stamps, self._stamps.append, perf_counter
        kind, thread, inside = self._module_class, self._thread, False

        @wraps(call)
        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside or get_ident() != thread:
                return kind.__call__(module, *args, **kwargs)
            inside = True
            try:
                if kind.__call__ is call:
                    return module._call_impl(*args, **kwargs)
                return kind.__call__(module, *args, **kwargs)  # torch.fx exchanges it
            finally:
                inside = False
                now = clock()
                append(now)
                if now >= follower._limit or len(stamps) >= follower._most:
                    follower._check(now)

        return called

    def called(self) -> None:
        """`gpulab.step()`."""
        self._step(CALL)

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        if self._mark == CALL:
            return
        if self._optimizer is None or self._optimizer() is None:
            self._optimizer = ref(optimizer)
        if self._optimizer() is optimizer:
            self._step(OPTIMIZER)
            if self._mark == OPTIMIZER and not self._off:
                self._hook_optimizers(self._marking_one(self._optimizer))

    def _marking_one(self, own: Any) -> Callable[..., Any]:
        """The hook of optimizers once it is known whose steps count."""
        follower, stamps, append, clock = self, self._stamps, self._stamps.append, perf_counter
        thread = self._thread

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            if own() is not optimizer or get_ident() != thread:
                if own() is None:
                    follower._optimizer_stepped(optimizer)
                return
            now = clock()
            append(now)
            if now >= follower._limit or len(stamps) >= follower._most:
                follower._check(now)

        return stepped

    def _hook_optimizers(self, hook: Callable[..., Any]) -> None:
        """torch may be going through its hooks, here or in another thread: ours is exchanged, and
        never taken away.
        """
        handle = self._optimizers
        if handle is not None:
            handle.hooks_dict_ref()[handle.id] = hook

    def _module_called(self, module: Any) -> None:
        """Of the outermost modules, those of the class that is called most often are steps: a loss
        is a module too, and so is an encoder that is called once for many steps of a decoder.
        """
        if self._off or self._child or (self._mark is not None and self._mark != MODULE):
            return
        kind = type(module)
        if self._step_class is None:
            self._calls[kind] += 1
            self._outermost.append(ref(module))
            if kind is next(iter(self._calls)):
                self._step(MODULE)
            if len(self._outermost) >= _CHOOSING:
                self._step_class = self._calls.most_common(1)[0][0]
                self._hook_class()
        elif kind is self._step_class:
            self._step(MODULE)

    def _hook_class(self) -> None:
        """From here on calls of the class of steps are marked, and those of no other module: a hook
        on all took a fifth of a step of one small module.
        """
        kind, self._outermost, modules = self._step_class, [], self._outermost
        try:
            if self._mark != MODULE or self._has_compiled:
                return
            if "torch._dynamo" in sys.modules and not self._told_of_compiling:
                return
            if kind.__call__ is not self._own_call:
                return
            if any(_holds(module(), kind) for module in modules):
                return  # within those its calls are no steps
            call = self._call
            code = getattr(call, "__code__", None)
            if code is None or code.co_names != _WRAPPED_CALL:
                return
            marked = self._marked(call)
            if not _never_compiled(marked):
                return
            self._unwrap()
            kind.__call__ = marked
            self._hooked = True
        except Exception:
            self._stop()

    def _unhook_class(self) -> None:
        """Give the class of steps its own call back."""
        self._untime_marks()
        if not self._hooked:
            return
        self._hooked = False
        del self._step_class.__call__

    def _step(self, mark: str) -> None:
        """A step has ended."""
        if self._off:
            return
        now = perf_counter()
        if (mark != self._mark or get_ident() != self._thread) and not self._begins(mark):
            return
        self._stamps.append(now)
        if now >= self._limit or len(self._stamps) >= self._most:
            self._check(now)

    def _check(self, now: float) -> None:
        """Whether the window is over with the step that has just ended."""
        window, steps = self._window, len(self._stamps)
        if steps < window.least or (steps < window.most and now - self._begun < window.seconds):
            return
        try:
            self._window_over(now)
        except Exception:
            self._stop()

    # windows

    def _begins(self, mark: str) -> bool:
        """Whether steps count from now on: the first ones, or those with a better mark."""
        if self._mark is not None and _RANKS[mark] <= _RANKS[self._mark]:
            return False
        try:
            if self._recorder is not None:
                self._recorder.discard()
                self._recorder = None
            self._mark, self._thread = mark, get_ident()
            if mark != MODULE:
                self._unwrap()
            if mark == CALL:
                self._hook_optimizers(_nothing)
            self._plan = _everything(records=self._records)
            self._window = next(self._plan)
            self._marking_s = None
            self._ran = 0.0
            self._begin_at(self._started)
        except Exception:
            self._stop()
            return False
        return True

    def _begin_at(self, now: float) -> None:
        """The first step of a window begins."""
        window = self._window
        self._stamps.clear()
        self._begun = now
        self._most = window.most
        self._limit = now + window.seconds if window.least < window.most else inf

    def _window_over(self, now: float) -> None:
        window, recorder, file = self._window, self._recorder, None
        self._untime_marks()
        if window.synchronised:
            _synchronise()
            now = perf_counter()
        if recorder is not None:
            self._recorder = None
            recorder.stop()
            self._attached = _on_cuda() and os.environ.get(_TEARDOWN) != "1"
        seconds = now - self._begun
        ran_s = thread_time() - self._ran
        self._write_window(window, seconds, ran_s)
        if recorder is not None and recorder.valid:
            self._recordings += 1
            if window.recording:
                name = f"{os.getpid()}-{self._recordings}-{window.recording}.json"
                file = os.path.join(self._folder, name)
                recorder.export(file)
                self._write(
                    type="recorded",
                    recording=window.recording,
                    steps=len(self._stamps),
                    seconds=seconds,
                    cpu_s=ran_s,
                    file=file,
                    known=self._known(len(self._stamps)) if window.recording == "plain" else {},
                )
        if window.kind == WARM_UP:
            self._say_device()
        self._window = self._plan.send(_Done(len(self._stamps), seconds, file))
        if self._window.kind == PROFILED and "torch" not in sys.modules:
            self._plan = _later(1e-3)
            self._window = next(self._plan)
        if self._window.kind == PROFILED:
            self._recorder = _Recorder.started(self._window.recording)
            if self._recorder is None:  # the program profiles itself
                self._plan = _later(1e-3)
                self._window = next(self._plan)
                self._write(type="profiled elsewhere")
        if self._marking_s is None and self._window.kind != PROFILED:
            self._time_marks()
        if self._window.synchronised:
            _synchronise()
        self._stamps.clear()
        self._compiled = _compiled()
        self._between_s = perf_counter() - now
        if self._arrivals is not None:
            begun = now - seconds if window.kind == PROFILED else now
            self._arrivals.following(begun, perf_counter())
        self._ran = thread_time()
        self._begin_at(perf_counter())
        if self._recorder is not None:
            self._recorder.mark()

    def _known(self, steps: int) -> dict[str, float]:
        """Facts that no recording has: what was compiled, loaders' processes, parameters."""
        known: dict[str, float] = {}
        after, before = _compiled(), self._compiled
        if after is not None:
            before = before or (0, 0.0)
            known["compilations"] = max(0, after[0] - before[0]) / steps
            known["compile_s"] = max(0.0, after[1] - before[1]) / steps
            counters = sys.modules["torch._dynamo.utils"].counters
            kinds = ("graph_break", "unimplemented")
            known["graph_breaks"] = max(sum(counters[kind].values()) for kind in kinds)
        optimizer = self._optimizer() if self._optimizer is not None else None
        if optimizer is not None:
            known["parameters"] = sum(len(group["params"]) for group in optimizer.param_groups)
        data = sys.modules.get("torch.utils.data.dataloader")
        if data is not None:
            objects = gc.get_objects()
            loaders = [each for each in objects if issubclass(type(each), data.DataLoader)]
            if loaders:
                known["workers"] = max(loader.num_workers for loader in loaders)
        return known

    def _write_window(self, window: _Window, seconds: float, ran_s: float) -> None:
        stamps, steps = self._stamps, len(self._stamps)
        kept: Iterable[int] = range(steps)
        if steps > _MOST_SINGLE:
            kept = [int(place * _GOLDEN % 1.0 * steps) for place in range(_MOST_SINGLE)]
        bins: Counter[int] = Counter()
        for place in kept:
            time_s = stamps[place] - (stamps[place - 1] if place else self._begun)
            bins[round(log(max(time_s, 1e-9)) / _BIN)] += 1
        each = max(1.0, steps / _MOST_SINGLE)
        times = [[exp(at * _BIN), round(count * each)] for at, count in sorted(bins.items())]
        self._write(
            type="steps",
            t=stamps[-1],  # perf_counter is the monotonic clock, which all processes share
            kind=window.kind,
            mark=self._mark,
            steps=steps,
            seconds=seconds,
            cpu_s=0.0 if window.kind == FIRST else ran_s,
            times=times,
            synchronised=window.synchronised,
            attached=self._attached and window.kind != PROFILED,
            costs=window.recording in ("", "plain"),
            between_s=self._between_s,
            marking_s=self._marking_s,
            peak_bytes=_peak_bytes(),
        )

    def _end(self) -> None:
        """The process ends by itself: what the last window has so far."""
        try:
            recorder, self._recorder = self._recorder, None
            if recorder is not None:
                recorder.discard()
            if self._stamps and not self._off and self._window.kind != FIRST:
                window = self._window._replace(synchronised=False, recording=None)
                seconds = self._stamps[-1] - self._begun
                self._write_window(window, seconds, thread_time() - self._ran)
            self._stop()
        except Exception:
            self._off = True

    def _forked(self) -> None:
        """In the child of a fork: one whose parent has stepped is a helper, and is not followed.
        Before that it may be the program itself, which went to the background.
        """
        try:
            stepped = self._mark not in (None, MODULE)
            self._fd = None  # the parent's: its number may soon be another file
            self._recorder = None
            if stepped:
                self._off = True
            self._mark, self._optimizer, self._thread, self._depth = None, None, 0, 0
            self._child = True
            self._stamps.clear()
            self._unwrap()
            self._hook_optimizers(_nothing if stepped else self._optimizer_stepped)
        except Exception:
            self._off = True

    def _stop(self) -> None:
        self._off = True
        self._unwrap()
        self._hook_optimizers(_nothing)

    def _unwrap(self) -> None:
        """Give modules their own call back, unless somebody has wrapped it again."""
        self._unhook_class()
        kind, own = self._module_class, self._own_call
        if kind is None or kind.__call__ is not own:
            return
        kind.__call__ = self._call
        # what Dynamo takes for the call that nobody changed: imported since, it is ours
        for name in _CALL_HOLDERS:
            dynamo = sys.modules.get(name)
            if dynamo is not None and getattr(dynamo, "unpatched_nn_module_call", None) is own:
                dynamo.unpatched_nn_module_call = self._call  # type: ignore[attr-defined]

    def _time_marks(self) -> None:
        """Until the window is over, each mark is timed, among the steps: by themselves, one after
        another, marks took a third of what they take there.
        """
        costs, clock = self._costs, perf_counter
        costs.clear()
        if not 1 < self._window.most <= _MOST_MARKS:
            return
        if self._mark == MODULE:
            if self._hooked:
                self._time_calls()
            return
        hooks = self._optimizers.hooks_dict_ref() if self._mark == OPTIMIZER else {}
        mark = hooks[self._optimizers.id] if hooks else self.called

        def timed(*args: Any) -> None:
            begun = clock()
            mark(*args)
            costs.append(clock() - begun)

        def untime() -> None:
            if hooks:
                self._hook_optimizers(mark)
            else:
                del self.called

        self._untime = untime
        if hooks:
            self._hook_optimizers(timed)
        else:
            self.called = timed  # type: ignore[method-assign]

    def _time_calls(self) -> None:
        """The same of calls of modules: what is not within the call that torch would make."""
        costs, clock, kind = self._costs, perf_counter, self._step_class
        mark, call = kind.__call__, kind._call_impl
        within_s = 0.0

        def within(module: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal within_s
            begun = clock()
            try:
                return call(module, *args, **kwargs)
            finally:
                within_s = clock() - begun

        @wraps(mark)
        def timed(module: Any, *args: Any, **kwargs: Any) -> Any:
            begun = clock()
            try:
                return mark(module, *args, **kwargs)
            finally:
                costs.append(clock() - begun - within_s)

        def untime() -> None:
            kind.__call__ = mark
            del kind._call_impl

        self._untime = untime
        kind._call_impl, kind.__call__ = within, timed

    def _untime_marks(self) -> None:
        untime, self._untime = self._untime, None
        if untime is None:
            return
        untime()
        if self._costs:
            reads = [perf_counter() for _ in range(_MOST_MARKS)]
            between = [reads[at + 1] - reads[at] for at in range(_MOST_MARKS - 1)]
            self._marking_s = max(0.0, _middle(self._costs) - _middle(between))

    # lines

    def _write(self, **line: Any) -> None:
        if self._fd is None:
            name = f"{os.getpid()}-{os.urandom(4).hex()}.jsonl"
            path = os.path.join(self._folder, name)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o600)
            self._write(
                type="process",
                pid=os.getpid(),
                parent=os.getppid(),
                python="{}.{}.{}".format(*sys.version_info[:3]),
                rank=self._rank,
                torch=_torch_version(),
            )
        os.write(self._fd, json.dumps(line).encode() + b"\n")

    def _say_torch(self) -> None:
        """That torch is being imported here: only processes that do so have a file."""
        try:
            if self._records and _cuda_version() >= _TEARDOWN_FROM:
                os.environ.setdefault(_TEARDOWN, "1")
            if self._fd is None:
                self._write(type="torch")
                self._watch_ranks()
        except Exception:
            self._off = True

    def _watch_ranks(self) -> None:
        """Where there are several."""
        if self._rank is None or self._child:
            return
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpulab_arrivals.py")
        spec = spec_from_file_location("gpulab_arrivals", path)
        module = module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        if module.rank_and_ranks() is not None:
            self._arrivals = module.Arrivals(self._write)

    def _say_device(self) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            return
        device = {"kind": "cpu", "threads": torch.get_num_threads()}
        if _on_cuda():
            properties = torch.cuda.get_device_properties(torch.cuda.current_device())
            uuid = str(properties.uuid)
            uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid
            if self._arrivals is not None:
                self._arrivals.watch_device(uuid)
            device.update(
                kind="cuda",
                name=properties.name,
                uuid=uuid,
                memory_bytes=properties.total_memory,
                l2_bytes=properties.L2_cache_size,
                capability=f"{properties.major}.{properties.minor}",
                sms=properties.multi_processor_count,
                sm_mhz=getattr(properties, "clock_rate", 0) / 1000,
                memory_mhz=getattr(properties, "memory_clock_rate", 0) / 1000,
                bus_bits=getattr(properties, "memory_bus_width", 0),
            )
        self._write(
            type="device",
            device=device,
            versions={"torch": str(torch.__version__), "cuda": torch.version.cuda},
        )


def _everything(records: bool) -> _Plan:
    """First step, warm-up, plain windows; then pairs of a recorded window with the plain ones
    beside it; then plain steps for ever.
    """
    yield _Window(FIRST, 1, 1, 0.0)
    done = yield _Window(WARM_UP, 1, 1, 0.0)
    seconds = done.seconds
    steps = 1
    while (steps < _WARM_STEPS or seconds < _WARM_S) and seconds < _WARM_MOST_S:
        done = yield _Window(WARM_UP, 1, 1_000, max(0.0, _WARM_S - seconds))
        steps += done.steps
        seconds += done.seconds
    if done.step_s < _MARKING_S:  # else there are too few marks to wait for
        done = yield _Window(WARM_UP, 1, _MOST_MARKS, _MARKING_S)
    plain, step_s = PLAIN, done.step_s
    for _ in range(_PLAIN_BEFORE_ON_DEVICE if _on_cuda() else _PLAIN_BEFORE):
        done = yield _plain(plain, _steps_of(step_s))
        step_s = done.step_s
    if records:
        step_s = yield from _recordings(step_s)
    yield from _later(step_s)


def _recordings(step_s: float) -> Generator[_Window, _Done, float]:
    """A step to start the profiler, which takes a second on a device; recordings of operations, of
    their shapes, of memory and callers; and pairs that show what recording costs.
    """
    done = yield _Window(PROFILED, 1, 1, 0.0, "one", True)
    events = _events_in(done.file)
    steps = max(1, min(_steps_of(step_s), _MOST_EVENTS // events))
    done = yield _plain(PLAIN, steps)
    for recording, count in (("plain", steps), ("shapes", steps), ("callers", 1)):
        yield _Window(PROFILED, count, count, 0.0, recording, True)
        done = yield _plain(PLAIN, steps)
    for _ in range(_COST_PAIRS):
        yield _Window(PROFILED, steps, steps, 0.0, "", True)
        done = yield _plain(PLAIN, steps)
    return done.step_s


def _later(step_s: float) -> _Plan:
    """Longer and longer windows, in which nothing is waited for."""
    seconds = _LATER_S
    while True:
        yield _Window(PLAIN, 1, _MOST_STEPS_LATER, seconds)
        seconds = min(seconds * _GROWTH, _LATER_MOST_S)


def _plain(kind: str, steps: int) -> _Window:
    return _Window(kind, steps, steps, 0.0, None, True)


def _steps_of(step_s: float) -> int:
    """Of a window: enough to fill it, at least a few while they take no longer than seconds."""
    fewest = max(1, min(_FEWEST, int(_LONGEST_WINDOW_S / step_s)))
    return max(fewest, min(_MOST_STEPS, int(_WINDOW_S / step_s)))


def _events_in(file: str | None) -> int:
    try:
        return max(1, os.stat(file or "").st_size // _BYTES_OF_EVENT)
    except OSError:
        return 1_000


class _Recorder:
    """torch's profiler over one window; it gives way to one that the program starts."""

    def __init__(self, profile: Any, kind: Any) -> None:
        self._profile, self._kind = profile, kind
        self._window: Any = None
        self._prepare: Callable[..., Any] | None = None
        self._marks: Any = None
        self.valid = True

    @classmethod
    def started(cls, recording: str | None) -> _Recorder | None:
        """None where the program records itself."""
        import torch
        from torch.autograd import profiler
        from torch.profiler import ProfilerActivity, profile

        if torch.autograd._profiler_enabled():  # type: ignore[attr-defined]
            return None
        activities = [ProfilerActivity.CPU]
        if _on_cuda():
            activities.append(ProfilerActivity.CUDA)
        full = recording == "callers"
        # on a CPU torch writes a warning to stderr where memory is recorded
        memory = full and len(activities) > 1
        made = profile(
            activities=activities,
            record_shapes=recording in ("shapes", "callers"),
            profile_memory=memory,
        )
        recorder = cls(made, profiler.profile)
        with warnings.catch_warnings():  # that it begins anew in each window
            warnings.simplefilter("ignore")
            made.__enter__()  # type: ignore[no-untyped-call]
        recorder._guard()
        if full and not _compiled():
            recorder._marks = Marks()
        return recorder

    def _guard(self) -> None:
        """A profiler that the program starts meanwhile would find this one in its way."""
        prepare = self._prepare = self._kind._prepare_trace

        @wraps(prepare)
        def first_ended(other: Any) -> Any:
            self.discard()
            return prepare(other)

        self._kind._prepare_trace = first_ended

    def mark(self) -> None:
        """The window begins."""
        import torch

        if self.valid:
            # record_function takes up to 0.3 ms in a recording, this 5 us
            self._window = torch._C._profiler._RecordFunctionFast(WINDOW)
            self._window.__enter__()
            if self._marks is not None:
                self._marks.begin()

    def stop(self) -> None:
        if self.valid:
            if self._marks is not None:
                self._marks.end()
            if self._window is not None:
                self._window.__exit__(None, None, None)
            self._unguard()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._profile.__exit__(None, None, None)

    def discard(self) -> None:
        """End it without a recording; never raises."""
        try:
            self.stop()
        except Exception:
            pass
        self.valid = False

    def export(self, file: str) -> None:
        self._profile.export_chrome_trace(file)

    def _unguard(self) -> None:
        if self._prepare is not None:
            self._kind._prepare_trace = self._prepare
            self._prepare = None


def _compiled() -> tuple[int, float] | None:
    """How many graphs torch compiled, and in how many seconds; None where it compiled nothing."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is None or not dynamo.counters["frames"]:
        return None
    times = dynamo.compilation_time_metrics.get("_compile.compile_inner", [])
    return dynamo.counters["stats"]["unique_graphs"], sum(times)


def _on_cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _rank() -> int | None:
    """By torchrun's variable, or by Slurm's where it started several."""
    rank = os.environ.get("RANK", "")
    if not rank and os.environ.get("SLURM_NTASKS", "1") != "1":
        rank = os.environ.get("SLURM_PROCID", "")
    return int(rank) if rank.isdigit() and len(rank) < 9 else None


def _synchronise() -> None:
    if _on_cuda():
        sys.modules["torch"].cuda.synchronize()


def _peak_bytes() -> int | None:
    return sys.modules["torch"].cuda.max_memory_allocated() if _on_cuda() else None


def _cuda_version() -> tuple[int, ...]:
    """Of torch; empty where it has none."""
    version = getattr(sys.modules.get("torch.version"), "cuda", None) or ""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _torch_version() -> str | None:
    version = sys.modules.get("torch.version")
    return str(version.__version__) if version is not None else None


CALLER = "gpulab:at "
_PACKAGES = ("/site-packages/", "/dist-packages/")


class Marks:
    """Spans in a recording that say which line of the program, in which module, calls torch: as
    those of `gpulab.features.goodput.marks`, between two steps of a loop that is not ours.
    """

    def __init__(self) -> None:
        import torch
        from torch.overrides import TorchFunctionMode

        marks = self
        self._torch = torch
        self._of_torch = os.path.dirname(torch.__file__) + os.sep
        self._of_python = os.path.dirname(os.__file__) + os.sep
        self._call = torch.nn.Module._call_impl.__code__
        self._own: dict[Any, bool] = {}
        self._names: dict[int, dict[int, str]] = {}
        self.on = False

        class Mode(TorchFunctionMode):
            """Within a call of torch it is off: the outermost call is the program's."""

            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                if not marks.on:
                    return func(*args, **(kwargs or {}))
                line, module = marks.caller(sys._getframe(1))
                with torch._C._profiler._RecordFunctionFast(f"{CALLER}{line}|{module}"):
                    return func(*args, **(kwargs or {}))

        self._mode = Mode()

    def begin(self) -> None:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        self.on = True

    def end(self) -> None:
        """Leave it, unless the program has entered a mode since that is still on: then it stays,
        and does nothing.
        """
        self.on = False
        from torch.overrides import _get_current_function_mode_stack

        stack = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if stack and stack[-1] is self._mode:
            self._mode.__exit__(None, None, None)

    def caller(self, frame: Any) -> tuple[str, str]:
        """The innermost line of the program, and the module that it is in."""
        line = ""
        modules = []
        while frame is not None:
            code = frame.f_code
            if code is self._call:
                modules.append(frame.f_locals.get("self"))
            elif not line and self._is_own(code):
                line = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
            frame = frame.f_back
        return line, self._module(modules)

    def _is_own(self, code: Any) -> bool:
        own = self._own.get(code)
        if own is None:
            own = self._own[code] = self._is_of_the_program(code.co_filename)
        return own

    def _is_of_the_program(self, file: str) -> bool:
        if file.startswith("<") or file.startswith(self._of_torch) or file == __file__:
            return False
        if any(folder in file for folder in _PACKAGES):
            return True
        return not file.startswith(self._of_python)

    def _module(self, innermost_first: list[Any]) -> str:
        kind = self._torch.nn.Module
        modules = [module for module in innermost_first if isinstance(module, kind)]
        if not modules:
            return ""
        root = modules[-1]
        if id(root) not in self._names:
            self._names[id(root)] = {id(each): name for name, each in root.named_modules()}
        name = self._names[id(root)].get(id(modules[0]))
        if name is None:
            return type(root).__name__
        return ".".join(filter(None, (type(root).__name__, name)))
