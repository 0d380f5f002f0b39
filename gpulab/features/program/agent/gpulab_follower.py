"""Follows the steps of one process of a program, from within: windows of them are timed, and some
are recorded by torch's profiler.

A step ends where `gpulab.step()` is called; without such calls where the first optimizer that steps
has stepped, or a step that JAX's StepTraceAnnotation marks has ended; and where there is neither,
with the outermost call of a module. Between windows a line is written to a file of this process, so
that whatever ends it leaves what was measured.

Standard library only, for Python 3.9 and later, and torch or JAX where the program imported it.
Nothing here may raise into the program, print, or leave a thread behind.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from importlib.util import find_spec
from inspect import signature
from json import dumps
from math import inf
from os import close, getpid, read, write
from os import open as open_file
from signal import getsignal, valid_signals
from threading import get_ident, main_thread
from time import perf_counter, sleep, thread_time
from types import CodeType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

CALL, OPTIMIZER, MODULE = "gpulab.step", "optimizer", "module"
ANNOTATION = "StepTraceAnnotation"
_RANKS = {MODULE: 0, OPTIMIZER: 1, ANNOTATION: 1, CALL: 2}
"""What takes precedence over what."""
FIRST, WARM_UP, PLAIN, PROFILED = "first", "warm-up", "plain", "profiled"
WINDOW = "gpulab:window"
_PROFILE = "GPULAB_FOLLOW_PROFILE"
"""The variable that says whether to record: on, at once, or off."""
_MOST_COST, _COST_S, _COST_ON_DEVICE_S = 0.03, 0.5, 1.5
"""Of the loop, that recordings may take; and what the first is expected to take, in seconds."""

_CHOOSING = 10
"""Outermost calls of modules until it is clear which of them are steps."""
_CALL_HOLDERS = ("torch._dynamo.utils", "torch._dynamo.variables.nn_module")
"""Where Dynamo keeps the call of a module that nobody changed."""
_WARM_STEPS, _WARM_S, _WARM_MOST_S = 3, 0.3, 10.0
_WINDOW_S, _FEWEST, _MOST_STEPS, _LONGEST_WINDOW_S = 0.25, 3, 200, 3.0
_PLAIN_BEFORE, _PLAIN_BEFORE_ON_DEVICE = 3, 8
_OWN_FILES = (
    *("follower", "jax", "arrivals", "marks", "ranges", "samples", "stacks", "parts", "trials"),
)
_OWN_MODULES = ("gpulab_agent", *(f"_gpulab_{name}" for name in _OWN_FILES))
_ENTRIES = (
    "_optimizer_stepped",
    "_module_called",
    "_compiles",
    "_profiles",
    "sampled",
    "collected",
)
"""From where on all that is called is of these modules, or of the standard library."""
_PATIENCE_S = 5.0
"""For a window to end, of a thread that starts a profiler."""
_LOG_LEVEL = "KINETO_LOG_LEVEL"
_EXPORT = "export_chrome_trace"
_PROFILERS = ("profile", "_KinetoProfile", "emit_nvtx", "emit_itt")
"""Classes of torch's modules of profilers."""
_MOST_EVENTS = 10_000
"""A recording of more takes longer to read than its steps took."""
_BYTES_OF_EVENT = 300
_STARTS, _JAX = "one", "jax"
_OF_STEPS = ("plain", "shapes", _JAX)
_RECORDINGS = (_STARTS, "plain", "shapes", "callers")
"""A step to start the profiler, which takes a second on a device; then operations, their shapes,
and memory and callers of a step.
"""
_LONGEST, _LONGEST_S = 4.0, 0.5
"""Times what its steps took before, and beyond that, for a recording that is kept."""
_LATER_S, _LATER_MOST_S = 1.0, 10.0
_GROWTH = 1.2
"""Of the windows when nothing is recorded any more, so that a day of them is no large file."""
_MOST_STEPS_LATER = 100_000
_LONGEST_KIND, _MOST_OPTIMIZERS = 100, 10
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


class Follower:
    """Of one process. The methods that the program's hooks call never raise."""

    def __init__(self, folder: str, samples: Any = None) -> None:
        self._folder = folder
        self._samples = samples
        self._tell_step: Any = getattr(samples, "step_ended", None)
        self.step_range: Any = None
        """Of the step, for a profiler of others that listens."""
        self._stepped: list[str] = []
        """The classes of the optimizers that stepped in this step."""
        self._optimizers: set[str] = set()
        """Those that have stepped so far."""
        self._kinds: dict[str, int] = {}
        """The steps of the window by what they did."""
        self._started = perf_counter()
        self._rank = _rank()
        self._records = os.environ.get(_PROFILE) in ("on", "at once") and not self._rank
        self._looped = inf
        """When the first step had ended, after which recordings may cost a share of the time."""
        self._cost_s = self._last_cost_s = self._step_s = 0.0
        """What recordings took so far, and the last; and what a plain step takes."""
        self.trials: Any = None
        """Changes that are tried in its steps."""
        self._arrivals: Any = None
        """Of a rank of a job of several."""
        self._file: str | None = None
        self._off = False
        self._mark: str | None = None
        self._thread = 0
        self._optimizer: Any = None
        self._modules_call: Any = None
        """The call of every module while it is watched: torch's own, and the one in its place."""
        self._calls: dict[type, int] = {}
        """Of outermost modules, until it is clear which class of them is a step."""
        self._step_class: Any = None
        self._told_of_compiling = self._has_compiled = False
        self._child = False
        self._jax: Any = None
        """Its profiler, where the program has imported it."""
        self._plan_windows()
        self._steps = 0
        self._ended = 0.0
        """Of the window, and when the newest of them ended."""
        self._limit = 0.0
        self._most = 0
        """From when, and from how many steps on, the window may be over."""
        self._begun = self._ran = 0.0
        self._delayed: float | None = None
        self._between_s = 0.0
        self._recorder: _Recorder | None = None
        self._torch_thread = 0
        """The one that imported torch: Kineto writes to stderr where another one records first."""
        self._own_profiler = 0
        """The thread in which a profiler that is made now is ours."""
        self._profilers: list[Any] = []
        """Those that the program made, as long as they live."""
        self._trace: Any = None
        """That the program makes with torch.jit: a reference that tells when it is done."""
        self._recordings = 0
        self._attached = False
        """Whether CUPTI, which makes every launch longer, stays in the process."""
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)

    # what the program's own code reaches

    def watch_optimizers(self, module: ModuleType) -> None:
        """`module` is torch.optim.optimizer, just imported. Dynamo traces the hooks of optimizers
        that it compiles: it finds nothing in ours, which stays the same one for ever.
        """
        self._say_torch()
        self._torch_thread = get_ident()
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None or not _never_compiled():
            return
        torch, stepped = sys.modules["torch"], self._optimizer_stepped

        def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not torch.compiler.is_compiling():
                stepped(optimizer)

        register(hook)

    def watch_compiler(self, module: ModuleType) -> None:
        """`module` is torch._dynamo.callback, just imported."""
        handler = module.callback_handler
        run = handler.run_start_callbacks

        def told_first(*args: Any) -> Any:
            self._compiles()
            return run(*args)

        handler.run_start_callbacks = told_first  # clear() would forget a callback
        self._told_of_compiling = True

    def _compiles(self) -> None:
        """Something is about to be compiled, here or in another thread: marks of callers would be
        a part of it.
        """
        self._has_compiled = True
        try:
            if self._recorder is not None:
                self._recorder.end_marks()
            if self._arrivals is not None:
                self._arrivals.compiles()
        except Exception as error:
            self._stop()
            _raise_of_a_handler(error)

    def _can_mark(self) -> bool:
        """Whether marks of callers meet no compiler."""
        told = self._told_of_compiling or "torch._dynamo" not in sys.modules
        return told and not self._has_compiled

    def watch_modules(self, module: ModuleType) -> None:
        """`module` is torch.nn.modules.module, just imported: wrap the call of every module, until
        there is a better mark of steps.
        """
        self._say_torch()
        if not _never_compiled():
            return
        kind = module.Module
        self._modules_call = kind, kind.__call__, self._outermost_marked(kind.__call__)
        self._wrap()

    def _outermost_marked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, of any module, which tells of those that no other module makes."""
        follower, thread, inside = self, get_ident(), False
        torch = sys.modules["torch"]

        @wraps(call)
        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if torch.compiler.is_compiling():
                return call(module, *args, **kwargs)
            outermost = not inside and get_ident() == thread
            inside = inside or outermost
            try:
                return call(module, *args, **kwargs)
            except BaseException as error:
                _leave_traceback(error)
                raise
            finally:
                if outermost:
                    inside = False
                    follower._module_called(module)

        return called

    def watch_traces(self, module: ModuleType) -> None:
        """`module` is torch.jit._trace, just imported. A trace keeps the frames that modules were
        called through, for its errors: while one is made, which is as long as its lookup of names
        lives, calls are not wrapped.
        """
        make = getattr(module, "_create_interpreter_name_lookup_fn", None)
        if make is None:
            return

        def made(*args: Any, **kwargs: Any) -> Any:
            lookup = make(*args, **kwargs)
            self._unwrap()
            self._trace = ref(lookup, lambda _: self._wrap())
            return lookup

        module._create_interpreter_name_lookup_fn = made  # type: ignore[attr-defined]

    def watch_jax(self, module: ModuleType) -> None:
        """`module` is jax._src.profiler, just imported."""
        agent: Any = sys.modules["_gpulab_agent"]
        jax = agent.load("_gpulab_jax", "../../jax/in_program.py")
        stepped = partial(self._step, ANNOTATION)
        self._jax = jax.Profiler(module, stepped, self._say_trace)
        self._write(type="torch")

    def _say_trace(self, file: str) -> None:
        """The program has written a trace of its own."""
        try:
            if not file.startswith(self._folder):
                self._write(type="own trace", file=os.path.join(os.getcwd(), file))  # noqa: PTH
        except Exception as error:
            _raise_of_a_handler(error)

    def watch_profilers(self, module: ModuleType) -> None:
        """`module` has profilers of torch, and was just imported. One that is in its warm-up says
        of itself that it is not enabled, and torch is ended by a second one.
        """
        for kind in _PROFILERS:
            profiler = vars(module).get(kind)
            writes = (_EXPORT,) if kind == "_KinetoProfile" else ()
            for name in ("__init__", "__enter__", "_prepare_trace", *writes):
                if profiler is not None and name in vars(profiler):
                    self._watch_profiler(profiler, name)

    def _watch_profiler(self, profiler: Any, name: str) -> None:
        follower, function = self, getattr(profiler, name)

        @wraps(function)
        def first_told(own: Any, *args: Any, **kwargs: Any) -> Any:
            if name != _EXPORT:
                follower._profiles(own, starts=name != "__init__")
            try:
                result = function(own, *args, **kwargs)
            except BaseException as error:
                _leave_traceback(error)
                raise
            if name == _EXPORT:
                follower._say_trace(str(args[0] if args else kwargs.get("path")))
            return result

        setattr(profiler, name, first_told)

    def _profiles(self, profiler: Any, *, starts: bool) -> None:
        """The program has made a profiler, or `starts` one: ours ends first."""
        if self._own_profiler == get_ident():
            return
        try:
            self._profilers = [each for each in self._profilers if each() is not None]
            self._profilers.append(ref(profiler))
            recorder = self._recorder
            if starts and recorder is not None and getattr(profiler, "enabled", True):
                recorder.discard()
        except Exception as error:
            self._stop()
            _raise_of_a_handler(error)

    def _profiled_elsewhere(self) -> bool:
        """Whether a profiler of the program lives, or is to come by its environment."""
        alive = [each() for each in self._profilers]
        made = any(each is not None and getattr(each, "enabled", True) for each in alive)
        return made or "KINETO_USE_DAEMON" in os.environ

    def called(self) -> None:
        """`gpulab.step()`."""
        self._step(CALL)

    def _optimizer_stepped(self, optimizer: Any) -> None:
        if self._arrivals is not None:
            self._arrivals.stepped(optimizer)
        if self._off:
            return
        if len(self._stepped) < _MOST_OPTIMIZERS:
            self._stepped.append(type(optimizer).__name__)
        if self._mark == CALL:
            return
        if self._optimizer is None or self._optimizer() is None:
            self._optimizer = ref(optimizer)
        if self._optimizer() is optimizer:
            self._step(OPTIMIZER)

    def _module_called(self, module: Any) -> None:
        """Of the outermost modules, those of the class that is called most often are steps: a loss
        is a module too, and so is an encoder that is called once for many steps of a decoder.
        """
        if self._off or self._child or (self._mark is not None and self._mark != MODULE):
            return
        kind = type(module)
        if self._step_class is None:
            self._calls[kind] = self._calls.get(kind, 0) + 1
            if kind is next(iter(self._calls)):
                self._step(MODULE)
            if sum(self._calls.values()) >= _CHOOSING:
                self._step_class = max(self._calls, key=self._calls.__getitem__)
        elif kind is self._step_class:
            self._step(MODULE)

    def _step(self, mark: str) -> None:
        """A step has ended."""
        if self._off:
            return
        now = perf_counter()
        if (mark != self._mark or get_ident() != self._thread) and not self._begins(mark):
            return
        self._steps += 1
        self._ended = now
        self._count_kind(mark)
        if now >= self._limit or self._steps >= self._most:
            self._check(now)
        if self.trials is not None:
            self._try()

    def _try(self) -> None:
        try:
            if not _capturing():
                self.trials.stepped(self._mark, self._has_compiled)
        except Exception as error:
            self.trials = None
            _raise_of_a_handler(error)

    def _count_kind(self, mark: str) -> None:
        """Count the step that has ended by what it did, and tell it to the samples."""
        try:
            kind = self._kind(mark)
            self._stepped.clear()
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            is_certain = mark != MODULE or self._window.kind != FIRST
            if self.step_range is not None and is_certain:
                self.step_range.next()
            if self._tell_step is not None:
                self._tell_step(kind if self._recorder is None else "")
        except Exception as error:
            self._stop()
            _raise_of_a_handler(error)

    def _kind(self, mark: str) -> str:
        """Return what the step did. Optimizers are named where there are several."""
        if not self._stepped:
            if mark in (CALL, ANNOTATION):
                return mark
            with_gradients = sys.modules["torch"].is_grad_enabled()
            return "module calls" if with_gradients else "module calls without gradients"
        self._optimizers.update(self._stepped)
        if len(self._optimizers) == 1 and len(self._stepped) == 1:
            return "train"
        if len(self._stepped) == _MOST_OPTIMIZERS:
            return "train: many optimizers"
        counts = sorted(Counter(self._stepped).items())
        names = (name if count == 1 else f"{count} {name}" for name, count in counts)
        return f"train: {', '.join(names)}"[:_LONGEST_KIND]

    def _check(self, now: float) -> None:
        """Whether the window is over with the step that has just ended."""
        window, steps = self._window, self._steps
        if steps < window.least or (steps < window.most and now - self._begun < window.seconds):
            return
        try:
            if not _capturing():  # a graph of the program: nothing else may use the device
                self._window_over(now)
        except Exception as error:
            self._stop()
            _raise_of_a_handler(error)

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
            self._plan_windows()
            self._begin_at(self._started)
        except Exception as error:
            self._stop()
            _raise_of_a_handler(error)
            return False
        return True

    def _plan_windows(self) -> None:
        of_jax = self._mark == ANNOTATION or "torch" not in sys.modules
        recordings = (_JAX,) if self._jax is not None and of_jax else _RECORDINGS
        self._left = list(recordings) if self._records else []
        self._plan = _windows(self._left, self._may_record)
        self._window = next(self._plan)

    def _begin_at(self, now: float) -> None:
        """The first step of a window begins."""
        window = self._window
        self._steps = 0
        self._kinds = {}
        self._begun = now
        self._most = window.most
        self._limit = now + window.seconds if window.least < window.most else inf

    def _window_over(self, now: float) -> None:
        window, recorder, file = self._window, self._recorder, None
        if recorder is not None:
            recorder.end_marks()
        if window.synchronised:
            _synchronise()
            now = perf_counter()
        if recorder is not None:
            recorder.end_window()  # with what the device still had to do
        ran_s = thread_time() - self._ran
        delay_s = _since(self._delayed)
        if recorder is not None:
            recorder.stop()
            self._recorder = None
            self._attached = _on_cuda() and os.environ.get(_TEARDOWN) != "1"
        seconds = now - self._begun
        self._write_window(window, seconds)
        # such as a validation: it would take long to write, and longer to read
        usual = seconds < _LONGEST * self._step_s * self._steps + _LONGEST_S
        if recorder is not None and recorder.valid and usual:
            self._recordings += 1
            if window.recording:
                name = f"{getpid()}-{self._recordings}-{window.recording}.json"
                file = os.path.join(self._folder, name)
                recorder.export(file)
                self._write(
                    type="recorded",
                    recording=window.recording,
                    steps=self._steps,
                    seconds=seconds,
                    cpu_s=ran_s,
                    delay_s=delay_s,
                    file=file,
                )
        elif recorder is not None and window.recording == _JAX and not recorder.valid:
            self._write(type="profiled elsewhere")
        if window.kind == WARM_UP:
            self._say_device()
        self._window = self._plan.send(_Done(self._steps, seconds, file))
        if self._window.kind == PROFILED:
            self._start_recorder()
        if self._window.synchronised:
            _synchronise()
        step_s = seconds / max(1, self._steps)
        self._steps = 0
        self._between_s = perf_counter() - now
        self._count_cost(window, step_s)
        if self._arrivals is not None:
            begun = now - seconds if window.kind == PROFILED else now
            self._arrivals.following(begun, perf_counter())
        self._ran, self._delayed = thread_time(), _delayed_s()
        self._begin_at(perf_counter())
        if self._recorder is not None:
            self._recorder.begin_window()

    def _count_cost(self, ended: _Window, step_s: float) -> None:
        """Keep what a recording took: to start it, its longer steps, and to export it."""
        if ended.kind == FIRST:
            self._looped = perf_counter()
        elif ended.kind == PLAIN:
            self._step_s = step_s
        cost_s = 0.0
        if self._window.kind == PROFILED:
            self._last_cost_s, cost_s = 0.0, self._between_s
        elif ended.kind == PROFILED:
            cost_s = self._between_s + max(0.0, step_s - self._step_s) * ended.most
        self._last_cost_s += cost_s
        self._cost_s += cost_s

    def _may_record(self) -> bool:
        """Return whether the next recording leaves the loop as long as it may be."""
        if os.environ.get(_PROFILE) == "at once":
            return True
        expected_s = self._last_cost_s or (_COST_ON_DEVICE_S if _on_cuda() else _COST_S)
        return self._cost_s + expected_s <= _MOST_COST * (perf_counter() - self._looped)

    def _start_recorder(self) -> None:
        """Record the window; where the program profiles itself, none from now on."""
        of_jax = self._window.recording == _JAX
        other_thread = self._torch_thread != get_ident() and not of_jax
        if of_jax:
            self._recorder = self._jax.started(os.path.join(self._folder, f"{getpid()}-jax"))
        elif not (other_thread or self._profiled_elsewhere()):
            self._own_profiler = get_ident()
            try:
                self._recorder = _Recorder.started(self._window.recording, self._can_mark())
            finally:
                self._own_profiler = 0
        if self._recorder is None:
            self._left.clear()
            self._window = self._plan.send(_Done(0, 0.0, None))
            self._write(type="profiled elsewhere", other_thread=other_thread)

    def _write_window(self, window: _Window, seconds: float) -> None:
        self._write(
            type="steps",
            t=self._ended,  # perf_counter is the monotonic clock, which all processes share
            kind=window.kind,
            mark=self._mark,
            steps=self._steps,
            kinds=self._kinds,
            seconds=seconds,
            synchronised=window.synchronised,
            attached=self._attached and window.kind != PROFILED,
            between_s=self._between_s,
            peak_bytes=_peak_bytes(),
        )

    def _end(self) -> None:
        """The process ends by itself: what the last window has so far."""
        try:
            recorder, self._recorder = self._recorder, None
            if recorder is not None:
                recorder.discard()
            if self._steps and not self._off and self._window.kind != FIRST:
                window = self._window._replace(synchronised=False, recording=None)
                self._write_window(window, self._ended - self._begun)
            self._stop()
        except Exception:
            self._off = True

    def _forked(self) -> None:
        """In the child of a fork: one whose parent has stepped is a helper, and is not followed.
        Before that it may be the program itself, which went to the background.
        """
        try:
            self._off = self._off or self._mark not in (None, MODULE)
            self._file = None
            self._recorder = None
            self._mark, self._optimizer, self._thread = None, None, 0
            self._child = True
            self._steps = 0
            self._unwrap()
        except Exception:
            self._off = True

    def _stop(self) -> None:
        self._off = True
        self._unwrap()

    def _wrap(self) -> None:
        if self._modules_call is None or self._off or self._child:
            return
        kind, call, own = self._modules_call
        if kind.__call__ is call:
            kind.__call__ = own

    def _unwrap(self) -> None:
        """Give modules their own call back, unless somebody has wrapped it again."""
        if self._modules_call is None:
            return
        kind, call, own = self._modules_call
        if kind.__call__ is not own:
            return
        kind.__call__ = call
        # what Dynamo takes for the call that nobody changed: imported since, it is ours
        for name in _CALL_HOLDERS:
            dynamo = sys.modules.get(name)
            if dynamo is not None and getattr(dynamo, "unpatched_nn_module_call", None) is own:
                dynamo.unpatched_nn_module_call = call  # type: ignore[attr-defined]

    # lines

    def _write(self, **line: Any) -> None:
        """Nothing stays open: a program may close all numbers, and open files of its own there."""
        data = dumps(line).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        if self._file is None:
            self._file = self._new_file()
            flags |= os.O_CREAT | os.O_EXCL
            data = dumps(self._about()).encode() + b"\n" + data
        fd = open_file(self._file, flags, 0o600)
        try:
            write(fd, data)
        finally:
            close(fd)

    def _about(self) -> dict[str, Any]:
        return {
            "type": "process",
            "pid": getpid(),
            "parent": os.getppid(),
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
            "rank": self._rank,
            "torch": _torch_version(),
        }

    def _new_file(self) -> str:
        return os.path.join(self._folder, f"{getpid()}-{os.urandom(4).hex()}.jsonl")

    def _say_torch(self) -> None:
        """That torch is being imported here: only processes that do so have a file."""
        try:
            if self._records and _cuda_version() >= _TEARDOWN_FROM:
                os.environ.setdefault(_TEARDOWN, "1")
            if self._file is None:
                self._write(type="torch")
        except Exception:
            self._off = True

    def watch_groups(self, module: ModuleType) -> None:
        """`module` is torch.distributed.distributed_c10d: who starts the ranks does not matter, a
        process that makes a group with others is one.
        """
        make, joined = module.init_process_group, self._joined

        @wraps(make)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            try:
                made = make(*args, **kwargs)
            except BaseException as error:
                _leave_traceback(error)
                raise
            joined(module)
            return made

        module.init_process_group = init_process_group  # type: ignore[attr-defined]

    def _joined(self, module: Any) -> None:
        """There is a process group."""
        try:
            in_main = get_ident() == main_thread().ident
            if self._off or self._arrivals is not None or not in_main:
                return
            if module.get_world_size() < 2:
                return
            self._rank = module.get_rank()
            self._records = self._records and not self._rank
            if self._samples is not None:
                self._samples.rank = str(self._rank)
            self._write(**self._about())
            agent: Any = sys.modules["_gpulab_agent"]
            arrivals = agent.load("_gpulab_arrivals", "gpulab_arrivals.py")
            self._arrivals = arrivals.Arrivals(self._write)
        except Exception:
            return

    def _say_device(self) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            return
        device = {"kind": "cpu", "threads": torch.get_num_threads()}
        if _on_cuda():
            properties = torch.cuda.get_device_properties(torch.cuda.current_device())
            uuid = str(properties.uuid)
            uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid
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


def _windows(left: list[str], may_record: Callable[[], bool]) -> _Plan:
    """First step, warm-up, plain windows; then the recordings that are left, each as soon as the
    loop has been long enough for it, and with a plain window behind it; then longer and longer
    windows in which nothing is waited for.
    """
    yield _Window(FIRST, 1, 1, 0.0)
    done = yield _Window(WARM_UP, 1, 1, 0.0)
    seconds = done.seconds
    steps = 1
    while (steps < _WARM_STEPS or seconds < _WARM_S) and seconds < _WARM_MOST_S:
        done = yield _Window(WARM_UP, 1, 1_000, max(0.0, _WARM_S - seconds))
        steps += done.steps
        seconds += done.seconds
    for _ in range(_PLAIN_BEFORE_ON_DEVICE if _on_cuda() else _PLAIN_BEFORE):
        steps = _steps_of(done.step_s)
        done = yield _Window(PLAIN, steps, steps, 0.0, None, True)
    if "torch" not in sys.modules and _JAX not in left:
        left.clear()
    while left:
        if not may_record():
            yield _Window(PLAIN, 1, _MOST_STEPS_LATER, _LATER_S, None, True)
            continue
        recording = left.pop(0)
        count = steps if recording in _OF_STEPS else 1
        done = yield _Window(PROFILED, count, count, 0.0, recording, True)
        if recording == _STARTS:
            steps = max(1, min(steps, _MOST_EVENTS // _events_in(done.file)))
        yield _Window(PLAIN, steps, steps, 0.0, None, True)
    seconds = _LATER_S
    while True:
        yield _Window(PLAIN, 1, _MOST_STEPS_LATER, seconds)
        seconds = min(seconds * _GROWTH, _LATER_MOST_S)


def _steps_of(step_s: float) -> int:
    """Of a window: enough to fill it, at least a few while they take no longer than seconds."""
    fewest = max(1, min(_FEWEST, int(_LONGEST_WINDOW_S / step_s)))
    return max(fewest, min(_MOST_STEPS, int(_WINDOW_S / step_s)))


def _events_in(file: str | None) -> int:
    try:
        return max(1, os.stat(file or "").st_size // _BYTES_OF_EVENT)
    except OSError as error:
        _raise_of_a_handler(error)
        return 1_000


class _Recorder:
    """torch's profiler over one window; it gives way to one that the program starts."""

    def __init__(self, profile: Any, marks: Any) -> None:
        self._profile, self._marks = profile, marks
        self._window: Any = None
        self._thread = get_ident()
        self._running = self.valid = True

    @classmethod
    def started(cls, recording: str | None, marks: bool) -> _Recorder | None:
        """None where the program records itself."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        if torch.autograd._profiler_enabled():  # type: ignore[attr-defined]
            return None
        activities = [ProfilerActivity.CPU]
        if _on_cuda():
            activities.append(ProfilerActivity.CUDA)
        full = recording == "callers"
        # on a CPU torch writes a warning to stderr where memory is recorded
        memory = full and len(activities) > 1
        options: dict[str, Any] = {}
        # without it some versions warn, once; and what hides a warning shows others again
        if "acc_events" in signature(profile.__init__).parameters:
            options["acc_events"] = True
        made = profile(
            activities=activities,
            record_shapes=recording in ("shapes", "callers"),
            profile_memory=memory,
            **options,
        )
        with _quiet():
            made.__enter__()  # type: ignore[no-untyped-call]
        return cls(made, _marks() if full and marks else None)

    def begin_window(self) -> None:
        import torch

        if self._running:
            # record_function takes up to 0.3 ms in a recording, this 5 us
            self._window = torch._C._profiler._RecordFunctionFast(WINDOW)
            self._window.__enter__()
            if self._marks is not None:
                self._marks.__enter__()

    def end_window(self) -> None:
        """What comes after the steps is in no figure of them."""
        window, self._window = self._window, None
        self.end_marks()
        if window is not None:
            window.__exit__(None, None, None)

    def end_marks(self) -> None:
        """In the thread that began them."""
        if self._marks is not None and get_ident() == self._thread:
            self._marks.end()

    def stop(self) -> None:
        if self._running:
            try:
                self.end_window()
                with _quiet():
                    self._profile.__exit__(None, None, None)
            finally:
                self._running = False

    def discard(self) -> None:
        """End it without a recording; never raises. In another thread wait for its window: torch
        ends a profiler in the thread that began it alone.
        """
        try:
            if get_ident() == self._thread:
                self.stop()
        except Exception as error:
            _raise_of_a_handler(error)
        until = perf_counter() + _PATIENCE_S
        while self._running and perf_counter() < until and get_ident() != self._thread:
            sleep(0.01)
        self.valid = False

    def export(self, file: str) -> None:
        self._profile.export_chrome_trace(file)


def _marks() -> Any:
    """Marks of the callers of torch, as in recordings of functions."""
    agent: Any = sys.modules["_gpulab_agent"]
    marks = agent.load("_gpulab_marks", "../../goodput/marks.py").MarkedCalls()
    _never_compiled()
    return marks


@contextmanager
def _quiet() -> Iterator[None]:
    """Kineto would print into the program's output; what the program sets is its own."""
    if _LOG_LEVEL in os.environ:
        yield
        return
    os.environ[_LOG_LEVEL] = "99"
    try:
        yield
    finally:
        os.environ.pop(_LOG_LEVEL, None)


def _raise_of_a_handler(error: Exception) -> None:
    """Raise what a handler of a signal of the program's has raised while these modules ran."""
    codes = {_code_of(getsignal(number)) for number in valid_signals()}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            raise error
        traceback = traceback.tb_next


def _code_of(handler: Any) -> Any:
    function = getattr(handler, "func", handler)
    function = getattr(function, "__func__", function)
    return getattr(function, "__code__", getattr(type(function).__call__, "__code__", None))


def _leave_traceback(error: BaseException) -> None:
    """Take the frame that calls this out of the traceback: it is the program's. A bare `raise`
    puts it back before Python 3.11.
    """
    traceback = error.__traceback__
    if traceback is not None:
        error.__traceback__ = traceback.tb_next


def _since(delayed_s: float | None) -> float | None:
    now_s = _delayed_s()
    if now_s is None or delayed_s is None:
        return None
    return max(0.0, now_s - delayed_s)


def _delayed_s() -> float | None:
    """That this thread was ready to run and did not; None where the scheduler does not say."""
    try:
        file = open_file("/proc/thread-self/schedstat", os.O_RDONLY)
        try:
            return int(read(file, 100).split()[1]) / 1e9
        finally:
            close(file)
    except (OSError, ValueError, IndexError) as error:
        _raise_of_a_handler(error)
        return None


def _capturing() -> bool:
    return _on_cuda() and bool(sys.modules["torch"].cuda.is_current_stream_capturing())


def _never_compiled() -> bool:
    """Keep Dynamo from the frames of these modules; what they call it takes as ever. Whether this
    torch can do so: from 2.1 on. What is traced within a frame of the program's is another matter:
    there `is_compiling` is true.
    """
    frames: Any = sys.modules.get("torch._C._dynamo.eval_frame")
    if find_spec("torch.compiler") is None or frames is None:
        return False
    skip = getattr(frames, "skip_code", None)
    if skip is None:
        skip = partial(_set_strategy, frames)
    for name in _OWN_MODULES:
        if name in sys.modules:
            for code in _codes(sys.modules[name]):
                skip(code)
    return True


def _set_strategy(frames: Any, code: CodeType) -> None:
    """Dynamo takes what is called from here as ever only where the program's own is called."""
    action = frames._FrameAction
    within = action.SKIP if code.co_name in _ENTRIES else action.DEFAULT
    frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, within))


def _codes(holder: Any) -> Iterator[CodeType]:
    """All that a module, a class or a piece of code has in it."""
    values = holder.co_consts if isinstance(holder, CodeType) else list(vars(holder).values())
    for value in values:
        own = getattr(value, "__module__", None) in _OWN_MODULES
        if own and isinstance(value, type):
            yield from _codes(value)
        inner = getattr(getattr(value, "__func__", value), "__code__", value)
        if isinstance(inner, CodeType) and (own or inner is value):
            yield inner
            yield from _codes(inner)


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
