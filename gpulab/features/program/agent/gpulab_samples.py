"""Books the time of a Python process, from its start to its end, by samples of the main thread's
stack: what has passed since the sample before goes to a cause and to the innermost line of the
program.

A timer of the process's own sends a real-time signal, whose handler runs when the call that it
falls into has ended: a sampling thread would get the interpreter only where the program gives it
up, and books what C code does to the next line of torch. A timer ends with the process, is not
there after an exec, and a child of a fork starts its own.

From 3.10 on the interpreter looks for signals after calls and jumps and where a function begins,
not after operators: what `a @ b` takes would stand at the next of these. So the place is that of a
stack which gpulab's own process has read meanwhile, where it can. (One that faulthandler writes
when the signal comes would be exact too, but it ends Python 3.11 in one run of three.)

Standard library only, for Python 3.9 and later. Nothing here may raise into the program, print, or
leave a thread or an open file behind.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import resource
import signal
import sys
import sysconfig
import threading
from functools import wraps
from json import dumps
from math import floor, log, log1p
from opcode import opmap
from os import (
    O_CLOEXEC,
    O_CREAT,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_RDONLY,
    O_WRONLY,
    close,
    environ,
    fstat,
    ftruncate,
    getpid,
    getppid,
    read,
    sysconf,
    urandom,
    write,
)
from os import open as open_file
from stat import S_ISREG
from threading import get_ident, get_native_id
from time import clock_gettime, perf_counter, pthread_getcpuclockid, thread_time
from types import CodeType, FrameType
from typing import Any, NamedTuple, Tuple, Union

_EVERY_S, _LATER_S, _MOST_S = 0.01, 0.05, 1.0
"""A sample costs a loop of small operations five times what it takes itself (caches, frames): 2.3 %
each 10 ms, so after the first seconds there is one each 50 ms at most.
"""
_SAME = 4
"""Samples at one interval, then at another near it."""
_SHARE, _SHARE_AT_FIRST = 0.004, 0.02
"""Of the time that sampling may take: in the first seconds more."""
_FIRST_S = 5.0
_SAID_S, _SAID_MOST_S, _GROWTH = 0.25, 30.0, 1.3
"""How often the bill is written: rarely in a long program."""
_MOST_ROWS, _DEEPEST = 120, 3_000
_MOST_COMPILATIONS, _LONGEST, _MOST_LOOKS = 20, 300, 60
_MOST_KINDS, _KEPT_STEPS, _FEWEST_STEPS, _SLOW = 6, 400, 16, 2.0
"""Kinds of steps, the slow ones of each that are kept, how many tell what is usual, and how many
times that is slow.
"""
_BIN = log1p(0.01)
_MOST_SLOW_ROWS, _MOST_OF_THREADS, _MOST_SOURCE, _SOURCE_BYTES = 5, 20, 60, 1_000_000
_MOST_FILES = 20
_SWITCHES = ("detect_anomaly(", "set_num_threads(", "OMP_NUM_THREADS")
_IDLE_IN = {
    "threading",
    "queue",
    "selectors",
    "concurrent.futures",
    "multiprocessing",
    "socket",
    "ssl",
}
"""Modules in which a thread that is not the main one waits for work."""
_LOOKS_S = 0.1
_WAITS = 0.05
"""Of a sample's time off the CPU, from which on the scheduler is asked whether others had it."""
_SIGNAL = signal.SIGRTMAX - 5 if hasattr(signal, "SIGRTMAX") else 0
_BY_THREAD = 4
"""SIGEV_THREAD_ID: the main thread gets the signal, whichever runs."""

RECORDING = "recorded by gpulab"
_PASSES_ON = {
    "called",
    "exec_module",
    "first_told",
    "found",
    "hook",
    "init_process_group",
    "made",
    "timed",
    "told",
    "told_first",
}
"""Functions of the follower that call what the program called."""
IMPORT, COMPILE, DATA, EPOCH, WORKERS = (
    "import",
    "compile",
    "data",
    "first batch of an epoch",
    "start or end data workers",
)
_FOLDERS = sorted(
    {
        os.path.realpath(folder) + os.sep
        for folder in map(sysconfig.get_path, ("stdlib", "platstdlib"))
    }
    | {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}
)
_STARTS_AND_ENDS = {
    "__init__",
    "__iter__",
    "_get_iterator",
    "_reset",
    "_shutdown_workers",
}
_PACKAGES = ("/site-packages/", "/dist-packages/")
_RESUME = bytes([opmap["RESUME"]]) if "RESUME" in opmap else b"none"
_TRACKER = "multiprocessing/resource_tracker.py"
_COMPREHENSIONS = (".<listcomp>", ".<dictcomp>", ".<setcomp>", ".<genexpr>", ".<lambda>")
_FEATURES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OWN = (
    f"{_FEATURES}/program/",
    f"{_FEATURES}/trials/",
    f"{_FEATURES}/jax/in_program.py",
    f"{_FEATURES}/goodput/marks.py",
    f"{os.path.dirname(_FEATURES)}/proc/nvtx_ranges.py",
    f"{os.path.dirname(_FEATURES)}/proc/stacks.py",
)
_CAUSES = (
    ("/torch/_dynamo/convert_frame.py", COMPILE),
    ("/torch/_inductor/compile_fx.py", COMPILE),
    ("/torch/_inductor/async_compile.py", COMPILE),
    ("/torch/utils/cpp_extension.py", COMPILE),
    ("/triton/compiler/", COMPILE),
    ("/triton/runtime/autotuner.py", "autotune"),
    ("/torch/utils/data/", DATA),
    ("/torch/serialization.py", "save or load"),
    ("/safetensors/", "save or load"),
    ("/torch/_tensor_str.py", "format a tensor"),
    ("/torch/distributed/", "collectives"),
    ("/torch/nn/utils/clip_grad.py", "clip gradients"),
    ("/torch/amp/grad_scaler.py", "optimizer"),
    ("/torch/optim/", "optimizer"),
    ("/torch/autograd/", "backward"),
    ("/torch/_tensor.py", ""),
    ("/torch/", "torch"),
)
"""The innermost frame of a library that matches names the cause. Frames of Dynamo and Inductor that
*run* what was compiled are torch.
"""
_CALLS = {"_find_and_load": IMPORT}


COLLECTED, TAKEN = "garbage collection", "preempted"
IN_PROCESS, NOT_PERSISTENT = "in this process", "workers do not persist"


class _Code(NamedTuple):
    """What a frame of some code says: of the program, or of a library of that cause; `standard`:
    of Python's own.
    """

    own: bool
    cause: str
    package: str
    standard: bool = False


_Place = Tuple[str, str, Union[CodeType, None], int]


class _Steps:
    """Steps of one kind: how long they took, and what the slow ones were in."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_s = self.usual_s = 0.0
        self._bins: dict[int, tuple[int, float]] = {}
        """How many steps, and their seconds, in bins of 1 %."""
        self._rows: list[tuple[float, dict[_Place, float]]] = []

    def add(self, seconds: float, rows: dict[_Place, float]) -> None:
        """Take one step, and what was sampled in it."""
        self.count += 1
        self.longest_s = max(self.longest_s, seconds)
        place = floor(log(max(seconds, 1e-9)) / _BIN)
        count, before_s = self._bins.get(place, (0, 0.0))
        self._bins[place] = count + 1, before_s + seconds
        if self.count % _FEWEST_STEPS == 0:
            self.usual_s = self.part(0.5)
        if self.usual_s and seconds > _SLOW * self.usual_s:
            self._rows.append((seconds, dict(rows)))
            if len(self._rows) > _KEPT_STEPS:
                self._rows = sorted(self._rows, key=_seconds_of)[_KEPT_STEPS // 2 :]

    def part(self, share: float) -> float:
        """Return the quantile of all steps, to 1 %."""
        left = share * self.count
        for place in sorted(self._bins):
            count, seconds = self._bins[place]
            left -= count
            if left < 0:
                return seconds / count
        return self.longest_s

    def slow(self) -> tuple[int, float]:
        """Return how many took over twice the median, and how long all of them."""
        limit_s = _SLOW * self.part(0.5)
        over = [each for each in self._bins.values() if each[1] > limit_s * each[0]]
        return sum(count for count, _ in over), sum(seconds for _, seconds in over)

    def rows(self) -> dict[_Place, float]:
        """Return what was sampled in these, in all of them or in the longest."""
        limit_s = _SLOW * self.part(0.5)
        found: dict[_Place, float] = {}
        over = [rows for seconds, rows in self._rows if seconds > limit_s]
        for rows in over:
            for place, of_row in rows.items():
                found[place] = found.get(place, 0.0) + of_row
        return found


def _seconds_of(step: tuple[float, dict[_Place, float]]) -> float:
    return step[0]


class Samples:
    """Of one process. `begin` and what it starts never raise into the program."""

    def __init__(self, folder: str, stacks: Any) -> None:
        self._folder = folder
        self._stacks = stacks
        self.rank = environ.get("RANK", "")
        """Of several; the follower knows better once there is a process group."""
        self._codes: dict[CodeType, _Code] = {}
        self._begins: dict[CodeType, int] = {}
        self._timer: Any = None
        self._libc: Any = None
        self._started = 0.0
        self._reset(_started_s())

    def _reset(self, started: float) -> None:
        self._begun = self._last = perf_counter()
        self._started = started
        self._ran, self._delayed_s = thread_time(), _delayed_s()
        self._thread = get_ident()
        self._rows: dict[_Place, list[float]] = {}
        self._place_now = _GC
        self._samples = self._collections = 0
        self._samples_now = False
        self._own_s = self._collected_s = self._collecting = self._booked_s = 0.0
        self._preempted_s = 0.0
        self._memory: list[tuple[float, int, int, int]] = []
        self._looked, self._look_every_s = 0.0, _LOOKS_S
        self._kinds: dict[str, _Steps] = {}
        self._step_at = 0.0
        self._of_step: dict[_Place, float] = {}
        self._of_threads: dict[tuple[str, _Place], float] = {}
        self._ran_at: dict[int, float] = {}
        self._ran_by: dict[str, list[float]] = {}
        """By thread: its CPU time, and what the main thread waited meanwhile."""
        self._sources: dict[str, list[str]] = {}
        self._in_module = False
        self._of_module: dict[str, bool] = {}
        """Of the module whose frame was seen last: one that has ended is taken for it."""
        self._in_modules = dict.fromkeys(("graph", "training", "double"), 0.0)
        self._every_s = 0.0
        self._said_every_s, self._said = _SAID_S, self._begun
        self._role = "program"
        self._file = os.path.join(self._folder, f"{getpid()}-{urandom(4).hex()}.bill")

    def begin(self) -> None:
        """Sample from now on; nothing where the system has no such timer."""
        if not _SIGNAL or signal.getsignal(_SIGNAL) != signal.SIG_DFL:
            return
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "timer_create"):
            self._libc = ctypes.CDLL("librt.so.1", use_errno=True)
        self._guard_pause()
        for name in ("execv", "execve"):  # all others of os call these
            setattr(os, name, self._said_first(getattr(os, name)))
        self._begin_stacks()
        signal.signal(_SIGNAL, self.sampled)
        signal.siginterrupt(_SIGNAL, False)
        gc.callbacks.append(self.collected)
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self.forked)
        self._arm(_EVERY_S)

    def _guard_pause(self) -> None:
        """`signal.pause` is the one call that any signal ends: it waits without samples."""
        samples, pause = self, signal.pause

        def paused() -> None:
            every_s = samples._every_s
            samples._arm(0.0)
            try:
                pause()
            except BaseException as error:
                traceback = error.__traceback__
                error.__traceback__ = traceback.tb_next if traceback else None
                raise
            finally:
                samples._book(sys._getframe(1))
                samples._arm(every_s)

        signal.pause = paused

    def _said_first(self, function: Any) -> Any:
        """Return a function of os that replaces the program: the bill is written before."""
        samples = self

        @wraps(function)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            samples.replaced_by_exec(sys._getframe(1))
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                traceback = error.__traceback__
                error.__traceback__ = traceback.tb_next if traceback else None
                raise

        return replaced

    def replaced_by_exec(self, frame: FrameType | None) -> None:
        """Another program is about to take this process, unless that fails."""
        try:
            self._book(frame)
            self._say(ended=False)
        except Exception as error:
            if not _is_own(error):
                raise

    def _arm(self, every_s: float) -> None:
        """Start the timer, or change how often it fires; 0: not at all."""
        if self._timer is None:
            event = (ctypes.c_int * 16)()
            event[2], event[3] = _SIGNAL, _BY_THREAD
            event[4] = get_native_id()
            timer = ctypes.c_void_p()
            if self._libc.timer_create(1, event, ctypes.byref(timer)):
                return
            self._timer = timer
        self._every_s = every_s
        self._fire_each(every_s)

    def _fire_each(self, every_s: float) -> None:
        """Let the timer fire, and stacks be read, as often."""
        part = int(every_s), int(every_s % 1 * 1e9)
        times = (ctypes.c_long * 4)(*part, *part)
        self._stacks.look_each(every_s)
        self._libc.timer_settime(self._timer, 0, times, None)

    def _begin_stacks(self) -> None:
        """Let stacks be read; without them a place is where the interpreter looks for signals."""
        try:
            self._stacks.begin(self._libc)
        except Exception:
            return

    def forked(self) -> None:
        """In the child of a fork, which has no timer: its own time begins."""
        try:
            self._timer = None
            self._reset(perf_counter())
            self._role = "child process"
            self._begin_stacks()
            self._arm(_EVERY_S)
        except Exception:
            self._timer = None

    def end(self) -> None:
        """The process ends by itself."""
        try:
            if self._timer is not None:
                self._libc.timer_delete(self._timer)
                self._timer = None
            self._book(None)
            self._say(ended=True)
        except Exception:
            return

    def step_ended(self, kind: str) -> None:
        """A step of the program's loop has ended, which did this, or nothing that is to be kept;
        called in the main thread.
        """
        now = perf_counter()
        before, self._step_at = self._step_at, now
        # first: a sample that comes meanwhile books into the next one
        rows, self._of_step = self._of_step, {}
        steps = self._kinds.get(kind)
        if not kind:
            return
        if steps is None:
            if len(self._kinds) == _MOST_KINDS:
                return
            steps = self._kinds[kind] = _Steps()
        if before:
            steps.add(now - before, rows)
        else:  # what the first step takes begins with the program
            steps.count += 1

    def collected(self, phase: str, info: Any) -> None:
        """A callback of the collector, which may run in another thread than the one sampled."""
        if get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = perf_counter()
        elif self._collecting:
            self._collected_s += perf_counter() - self._collecting
            self._collecting = 0.0
            self._collections += 1

    def sampled(self, number: int, frame: FrameType | None) -> None:
        """Handle the timer's signal; one that comes meanwhile, as where this waits for the
        interpreter, is none.
        """
        if self._samples_now:
            return
        self._samples_now = True
        began = thread_time()
        try:
            seen = self._stacks.take(frame)
            if not seen and self._stacks.is_awaited(perf_counter() - self._last):
                return
            self._book(frame, seen)
            self._look_at_threads()
            self._look_at_memory()
            if self._last - self._said >= self._said_every_s:
                self._say(ended=False)
            self._samples += 1
            self._own_s += thread_time() - began
            self._thin()
            if not self._samples % _SAME:  # a loop may have a period, too
                self._fire_each(self._every_s * (0.75 + urandom(1)[0] / 512))
        except Exception as error:
            if not _is_own(error):
                raise
        finally:
            self._samples_now = False

    def _thin(self) -> None:
        """Sample more rarely where a sample costs more than its share."""
        if self._samples % 25:
            return
        first = self._last - self._begun < _FIRST_S
        share, least_s = (_SHARE_AT_FIRST, _EVERY_S) if first else (_SHARE, _LATER_S)
        every_s = min(_MOST_S, max(least_s, self._own_s / self._samples / share))
        if not 0.7 < every_s / self._every_s < 1.4:
            self._arm(every_s)

    def _book(self, frame: FrameType | None, seen: list[Any] | None = None) -> None:
        """Book what has passed since the last sample to where the thread was `seen`, else is."""
        now, ran = perf_counter(), thread_time()
        passed = now - self._last
        if self._collecting:  # the signal waits for the callback that tells of the end
            self._collected_s += now - self._collecting
            self._collecting = now
        collected_s = min(self._collected_s - self._booked_s, passed)
        self._booked_s += collected_s
        passed -= collected_s
        ran_s = max(0.0, min(ran - self._ran - collected_s, passed))
        waited_s = passed - ran_s
        taken_s = 0.0
        if waited_s > _WAITS * passed:  # to ask the scheduler takes as long as all else
            delayed_s = _delayed_s()
            taken_s = max(0.0, min(delayed_s - self._delayed_s, waited_s))
            self._delayed_s = delayed_s
            self._preempted_s += taken_s
            waited_s -= taken_s
        self._last, self._ran = now, ran
        self._passed_s, self._waited_s = passed, waited_s
        stacks = seen or self._stacks.take(frame) or [self._that_ran(frame)]
        for stack in stacks:
            self._book_at(stack, ran_s / len(stacks), waited_s / len(stacks))
        for where, seconds in ((_GC, collected_s), (_OTHERS, taken_s)):
            if seconds:
                self._of_step[where] = self._of_step.get(where, 0.0) + seconds

    def _book_at(self, frame: Any, ran_s: float, waited_s: float) -> None:
        """Book to where a frame is."""
        self._in_module = False
        place = self._place(frame)
        if self._in_module:
            for name, holds in self._of_module.items():
                self._in_modules[name] += holds * (ran_s + waited_s)
        if place[2] is not None and self._codes[place[2]].own:
            self._place_now = place
        row = self._rows.setdefault(place, [0.0, 0.0])
        row[0] += ran_s
        row[1] += waited_s
        self._of_step[place] = self._of_step.get(place, 0.0) + ran_s + waited_s

    def _look_at_memory(self, now: bool = False) -> None:
        """Note the memory, more and more rarely."""
        if not now and self._last - self._looked < self._look_every_s:
            return
        self._looked = self._last
        steps = sum(kind.count for kind in self._kinds.values())
        self._memory.append((self._last, _resident_bytes(), steps, _device_bytes()))
        if len(self._memory) > _MOST_LOOKS:
            del self._memory[1::2]
            self._look_every_s *= 2

    def _look_at_module(self, module: Any) -> None:
        """Keep whether a module trains, records a graph, and computes in fp64."""
        torch: Any = sys.modules["torch"]
        parameter = _first_parameter(module)
        self._of_module = {
            "training": module.training,
            "graph": parameter is not None and parameter.requires_grad and torch.is_grad_enabled(),
            "double": parameter is not None and parameter.dtype == torch.float64,
        }

    def _look_at_threads(self) -> None:
        """Book what has passed to where each other thread of Python is, unless it waits for work;
        keep the CPU time of each, and how long the main thread waited meanwhile. It is seen when
        the main thread has the interpreter.
        """
        frames = sys._current_frames()
        if len(frames) < 2:
            return
        names = {thread.ident: thread.name for thread in _threads_of_python()}
        for number, frame in frames.items():
            name = names.get(number, "")
            if number == self._thread or not name or name.startswith("gpulab"):
                continue
            # one that has a frame has not ended while this thread has the interpreter
            now_s = clock_gettime(pthread_getcpuclockid(number))
            ran_s = max(0.0, now_s - self._ran_at.get(number, 0.0))
            self._ran_at[number] = now_s
            times = self._ran_by.setdefault(name, [0.0, 0.0])
            times[0] += ran_s
            times[1] += min(ran_s, self._waited_s)
            inner = self._codes.get(frame.f_code) or self._know(frame.f_code)
            if inner.package in _IDLE_IN:
                continue
            key = name, self._place(frame)
            if key in self._of_threads or len(self._of_threads) < _MOST_ROWS:
                self._of_threads[key] = self._of_threads.get(key, 0.0) + self._passed_s

    def _that_ran(self, frame: FrameType | None) -> FrameType | None:
        """Return the frame, or its caller where it has only just begun: the time before is not its
        own.
        """
        if frame is None or frame.f_back is None:
            return frame
        begins = self._begins.get(frame.f_code)
        if begins is None:
            begins = self._begins[frame.f_code] = _begins(frame.f_code)
        return frame.f_back if frame.f_lasti == begins else frame

    def _know(self, code: CodeType) -> _Code:
        about = self._codes[code] = _about(code)
        self._stacks.know(code)
        return about

    def _place(self, frame: Any) -> _Place:
        """Return the cause, by the innermost frame of a library that tells; what of it; and the
        innermost line of the program, or else of a package. The package is the innermost one that
        was installed, or else the module of Python's that the program called.
        """
        cause = detail = package = ""
        standard = in_torch = False
        module: Any = None
        place: tuple[CodeType, int] | None = None
        other: tuple[CodeType, int] | None = None
        depth = 0
        while frame is not None and depth < _DEEPEST:
            depth += 1
            code = frame.f_code
            about = self._codes.get(code) or self._know(code)
            if about.own:
                if place is None:
                    place = code, frame.f_lineno or self._stacks.line(code, frame.f_lasti)
            elif place is None:
                if about.cause == IMPORT:
                    cause, detail = IMPORT, str(frame.f_locals.get("name", ""))
                elif (about.cause in (COMPILE, RECORDING) and cause != IMPORT) or not cause:
                    cause = about.cause
                in_torch = in_torch or about.cause == "torch"
                if about.package and other is None:
                    other = code, frame.f_lineno or 0
                if about.package and (standard or not package):
                    package, standard = about.package, about.standard
            if code.co_name == "main" and code.co_filename.endswith(_TRACKER):
                self._role = "helper"
            if code.co_name == "_worker_loop" and about.cause == DATA:
                self._role = "loader worker"
                cause = cause or DATA if place else "idle"
                break  # below it are frames of the process that it was forked from
            if about.cause == DATA and cause not in (IMPORT, COMPILE):
                cause, detail = _of_loader(frame, code, detail)
            if module is None and code.co_name == "_call_impl" and about.cause == "torch":
                self._in_module = True
                module = frame.f_locals.get("self")
            frame = frame.f_back
        if module is not None:
            self._look_at_module(module)
        if cause == IMPORT:
            # the names of modules are gone with the frames of imports that have ended
            detail = (detail or package).partition(".")[0] or "torch" * in_torch
        elif cause in ("", "torch"):
            detail = package
        elif cause == "backward" and sys.modules["torch"].is_anomaly_enabled():
            detail = "anomaly detection is on"
        return (cause, detail, *(place or other or (None, 0)))

    def _say(self, *, ended: bool) -> None:
        """Write the bill so far: whatever ends the process leaves it."""
        self._said = self._last
        self._said_every_s = min(_SAID_MOST_S, self._said_every_s * _GROWTH)
        self._look_at_memory(ended or not self._memory)
        _, _, file, number, function = _words(self._place_now)
        rows = sorted(self._rows.items(), key=lambda row: -row[1][0] - row[1][1])
        line = {
            "pid": getpid(),
            "parent": getppid(),
            "role": self._role,
            "rank": int(self.rank) if self.rank.isdigit() else 0,
            "ranked": self.rank.isdigit(),
            "started": self._started,
            "begun": self._begun,
            "t": self._last,
            "until": self._last,
            "ended": ended,
            "samples": self._samples,
            "own_s": self._own_s,
            "collected_s": self._booked_s,
            "collections": self._collections,
            "preempted_s": self._preempted_s,
            "rows": [
                [*_words(place), *times, self._source(place) if number < _MOST_OF_THREADS else ""]
                for number, (place, times) in enumerate(rows[:_MOST_ROWS])
            ],
            "steps": [
                [
                    kind,
                    steps.count,
                    steps.part(0.5),
                    steps.part(0.99),
                    steps.longest_s,
                    *steps.slow(),
                    _largest(steps.rows(), _MOST_SLOW_ROWS),
                ]
                for kind, steps in self._kinds.items()
            ],
            "other_threads": [
                [name, *_words(place), seconds, *self._ran_by[name]]
                for (name, place), seconds in _largest_of(self._of_threads, _MOST_OF_THREADS)
            ],
            "in_modules": self._in_modules,
            "switches": self._switches(),
            "faults": _faults(),
            "place": "{}:{} {}".format(os.path.basename(file), number, function) if file else "",
            "available": _available_bytes(),
            "compilations": _compilations(),
            "threads": _threads(),
            "cores": len(os.sched_getaffinity(0)),
            "memory": self._memory,
            "other_s": sum(times[0] + times[1] for _, times in rows[_MOST_ROWS:]),
        }
        data = dumps(line).encode()
        flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        fd = open_file(self._file, flags, 0o600)
        try:
            write(fd, data)
            ftruncate(fd, len(data))
        finally:
            close(fd)

    def _lines_of(self, file: str) -> list[str]:
        """Return the lines of a file of the program; of the first files alone."""
        if file not in self._sources and len(self._sources) < _MOST_FILES:
            try:
                self._sources[file] = _text(file, _SOURCE_BYTES).splitlines()
            except OSError:
                self._sources[file] = []
        return self._sources.get(file, [])

    def _switches(self) -> list[list[Any]]:
        """Return where the program's text has calls that switch something for all of it."""
        files = {code.co_filename for code, about in self._codes.items() if about.own}
        return [
            [switch, file, number]
            for file in sorted(files)
            for number, text in enumerate(self._lines_of(file), 1)
            for switch in _SWITCHES
            if switch in text
        ][:_MOST_OF_THREADS]

    def _source(self, place: _Place) -> str:
        """Return the text of a line of the program, as it is now."""
        code, line = place[2], place[3]
        if code is None or not self._codes[code].own:
            return ""
        lines = self._lines_of(code.co_filename)
        return lines[line - 1].strip()[:_MOST_SOURCE] if 0 < line <= len(lines) else ""


_GC: _Place = (COLLECTED, "", None, 0)
_OTHERS: _Place = (TAKEN, "", None, 0)


def _largest_of(found: dict[Any, float], most: int) -> list[tuple[Any, float]]:
    return sorted(found.items(), key=lambda row: -row[1])[:most]


def _largest(rows: dict[_Place, float], most: int) -> list[list[Any]]:
    return [[*_words(place), seconds] for place, seconds in _largest_of(rows, most)]


def _of_loader(frame: FrameType, code: CodeType, detail: str) -> tuple[str, str]:
    """Return what a loader does, and how; the outermost of its frames is asked last."""
    if not code.co_filename.endswith("dataloader.py"):
        return DATA, detail
    own = frame.f_locals.get("self")
    if own is not None:
        workers = getattr(own, "_num_workers", getattr(own, "num_workers", 0))
        persists = getattr(own, "_persistent_workers", getattr(own, "persistent_workers", True))
        _LOADER.update(workers=workers, persists=persists)
    if not _LOADER.get("workers"):
        return DATA, IN_PROCESS if _LOADER else detail
    how = "" if _LOADER["persists"] else NOT_PERSISTENT
    if code.co_name in _STARTS_AND_ENDS:
        return WORKERS, how
    if getattr(own, "_rcvd_idx", 1) == 0:
        return EPOCH, how
    return DATA, ""


_LOADER: dict[str, Any] = {}
"""Of the loader that was seen last: one whose frame has ended is taken for it."""


def _first_parameter(module: Any) -> Any:
    """Return the first parameter in a module; `parameters()` may be the program's own code."""
    modules = [module]
    for each in modules:
        parameter = next(filter(_is_there, each._parameters.values()), None)
        if parameter is not None:
            return parameter
        modules += filter(_is_there, each._modules.values())
    return None


def _is_there(value: Any) -> bool:
    return value is not None


def _device_bytes() -> int:
    """Return the memory of the GPU that torch has allocated; 0 without one."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not hasattr(cuda, "memory_allocated") or not cuda.is_initialized():
        return 0
    return int(cuda.memory_allocated())


def _threads_of_python() -> list[Any]:
    """Return the threads that run, without the lock of `enumerate`: this thread may hold it."""
    return list(getattr(threading, "_active", {}).values())


def _available_bytes() -> int:
    """Return the memory that the process could still get, by the system and its control group."""
    available = []
    try:
        for line in _text("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable"):
                available.append(int(line.split()[1]) * 1024)
        most = _text("/sys/fs/cgroup/memory.max").strip()
        if most.isdigit():
            available.append(int(most) - int(_text("/sys/fs/cgroup/memory.current")))
    except (OSError, ValueError):
        pass
    return max(0, min(available, default=0))


def _faults() -> list[float]:
    """Return major page faults, seconds of user code, and of the system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return [used.ru_majflt, used.ru_utime, used.ru_stime]


def _compilations() -> list[tuple[str, str, int, float, str]]:
    """Return the newest compilations by Dynamo: function, file, line, seconds, and why again."""
    kept = getattr(sys.modules.get("torch._dynamo.utils"), "_compilation_metrics", ())
    return [
        (
            str(each.co_name or ""),
            str(each.co_filename or ""),
            int(each.co_firstlineno or 0),
            float(each.entire_frame_compile_time_s or 0.0),
            str(getattr(each, "recompile_reason", None) or "")[:_LONGEST],
        )
        for each in list(kept)[-_MOST_COMPILATIONS:]
    ]


def _threads() -> int:
    """Return with how many threads torch computes; 0 before it is there."""
    torch: Any = sys.modules.get("torch")
    return int(torch.get_num_threads()) if hasattr(torch, "compile") else 0


def _resident_bytes() -> int:
    return int(_text("/proc/self/statm").split()[1]) * sysconf("SC_PAGE_SIZE")


def _text(path: str, most: int = 2_000) -> str:
    """Read a regular file, or one of the system, by functions that the program cannot have
    replaced.
    """
    fd = open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    try:
        return read(fd, most).decode(errors="replace") if S_ISREG(fstat(fd).st_mode) else ""
    finally:
        close(fd)


def _begins(code: CodeType) -> int:
    """Return where code looks for signals as it begins; -1 before Python 3.11."""
    operations = code.co_code[::2]
    return 2 * operations.find(_RESUME) if _RESUME in operations else -1


def _about(code: CodeType) -> _Code:
    file = code.co_filename
    if file.startswith("<frozen importlib"):
        return _Code(own=False, cause=_CALLS.get(code.co_name, ""), package="")
    if file.startswith(_OWN):
        cause = "" if code.co_name in _PASSES_ON else RECORDING
        return _Code(own=False, cause=cause, package="")
    if file.startswith("<") or "torchinductor" in file:
        return _Code(own=False, cause="", package="")
    place = next((file.rindex(folder) for folder in _PACKAGES if folder in file), None)
    if place is not None:
        package = file[place + len("/site-packages/") :].partition("/")[0].removesuffix(".py")
        cause = next((cause for part, cause in _CAUSES if part in file[place:]), "")
        return _Code(own=False, cause=cause, package=package if package != "torch" else "")
    if file.startswith(tuple(_FOLDERS)):
        module = next(file[len(folder) :] for folder in _FOLDERS if file.startswith(folder))
        name = os.path.dirname(module).replace("/", ".") or module.removesuffix(".py")
        return _Code(own=False, cause="", package="" if name == "runpy" else name, standard=True)
    return _Code(own=True, cause="", package="")


def _words(place: _Place) -> tuple[str, str, str, int, str]:
    cause, detail, code, line = place
    if code is None:
        return cause, detail, "", 0, ""
    function = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
    for part in _COMPREHENSIONS:
        function = function.replace(part, "")
    return cause, detail, code.co_filename, line, function


def _is_own(error: BaseException) -> bool:
    """Return whether it was raised here, and not by a handler of the program's that ran
    meanwhile.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_OWN)


def _started_s() -> float:
    """Return when the process was started, on the clock of perf_counter."""
    now = perf_counter()
    try:
        ticks = int(_text("/proc/self/stat").rpartition(")")[2].split()[19])
        since_boot = clock_gettime(7)  # CLOCK_BOOTTIME
        return now - max(0.0, since_boot - ticks / sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return now


def _delayed_s() -> float:
    """Return the seconds in which this thread was ready to run and did not; 0 where nobody
    counts.
    """
    try:
        return int(_text("/proc/thread-self/schedstat").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def begin(folder: str, stacks: Any) -> Samples | None:
    """Sample this process from now on; None where that cannot be."""
    try:
        samples = Samples(folder, stacks)
        samples.begin()
        return samples
    except Exception:
        return None
