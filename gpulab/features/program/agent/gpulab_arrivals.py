"""When this rank of a job came to each collective, and what it did between them: read from torch's
flight recorder about once a second by one thread, and written to the file of its process.

Standard library only, for Python 3.9 and later, and torch where the program imported it. Nothing
here may raise into the program or print. The thread imports nothing: the program may hold the lock.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from itertools import islice
from math import inf
from threading import get_ident
from time import perf_counter, thread_time, time, time_ns
from typing import Any

LOADER, BACKWARD, GC, CALL = "loader", "backward", "gc", "call"
STEP, FOLLOWING = "step", "following"
"""Kinds of spans. A step is the moment that it ends."""
_EVERY_S, _MOST_S = 1.0, 8.0
"""Between readings, at least and at most."""
_LEAST_WAIT_S = 0.2
_SHARE = 0.002
"""Of its time that a rank may read."""
_SHORTEST_GC_S = 0.0005
_MOST_SPANS, _MOST_AT_ONCE = 20_000, 1_000
"""That are kept, and that a reading writes: of steps of a millisecond the newest ones, as torch
keeps the newest collectives.
"""
_ALL_KEPT, _BLOCK, _FEWER = 16_384, 256, 8
"""Of a group all collectives are kept up to here, then a block of them of so many."""
_STANDS_AFTER_S, _FRAMES = 2.0, 6
_FAILURES = 3
_API = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
)
_NO_CALL = (inf, "")
_MOST_CODES = 1_000


class Arrivals:
    """Of one rank. `write` adds a line to the file of the process."""

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write
        self._main = threading.main_thread().ident or 0
        self._spans: deque[tuple[str, float, float, str]] = deque(maxlen=_MOST_SPANS)
        self._off = False
        self._ending = threading.Event()
        self._newest: dict[str, int] = {}
        """The last record that was read, of each recorder."""
        self._unfinished: dict[str, set[int]] = {}
        """Records of NCCL that had no time when they were read: they are read once more."""
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._lines: deque[tuple[float, float, str]] = deque(maxlen=_MOST_SPANS)
        self._calling = _NO_CALL
        """The call of the program that may go on, since when, and its line."""
        self._last_s = perf_counter()
        """When the newest collective came, on this host's monotonic clock."""
        self._optimizer = 0
        self._collecting = 0.0
        self._unwrap: list[Callable[[], None]] = []
        self._host = "{} {}".format(os.uname().nodename, _boot())
        self._thread = threading.Thread(target=self._run, name="gpulab ranks", daemon=True)
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)
        self._watch()
        self._thread.start()

    def following(self, begun: float, ended: float) -> None:
        """The follower took this time, or recorded in it: it is not the program's."""
        self._spans.append((FOLLOWING, begun, ended, ""))

    def stepped(self, optimizer: Any) -> None:
        """A step of the program ends with the one of its first optimizer."""
        if self._off or get_ident() != self._main:
            return
        self._optimizer = self._optimizer or id(optimizer)
        if self._optimizer == id(optimizer):
            now = perf_counter()
            self._spans.append((STEP, now, now, ""))

    def _collected(self, phase: str, _: Any) -> None:
        now = perf_counter()
        if phase == "start":
            self._collecting = now
        elif self._off or get_ident() != self._main:
            return
        elif now - self._collecting > _SHORTEST_GC_S:
            self._spans.append((GC, self._collecting, now, ""))

    def compiles(self) -> None:
        """Something is about to be compiled, and torch knows its collectives by their functions."""
        unwrap, self._unwrap = self._unwrap, []
        for each in unwrap:
            each()

    # the thread

    def _run(self) -> None:
        failures, every = 0, 1
        while not self._ending.wait(max(_LEAST_WAIT_S, 1 - time() % 1)) and failures < _FAILURES:
            # all ranks at once: of more records than torch keeps they have the same ones
            if int(time()) % every and not self._stands():
                continue
            try:
                begun = thread_time()
                self._read()
                every = _seconds_between(thread_time() - begun)
            except Exception:
                failures += 1

    def _stands(self) -> bool:
        """Whether the main thread has done nothing for a while, which a reading could delay."""
        return not self._spans or perf_counter() - self._spans[-1][2] > _EVERY_S

    def _watch(self) -> None:
        gc.callbacks.append(self._collected)
        autograd = sys.modules.get("torch.autograd")
        if autograd is not None:
            self._wrap(autograd, "backward", BACKWARD)
        data = sys.modules.get("torch.utils.data.dataloader")
        if data is not None:
            self._wrap(data._BaseDataLoaderIter, "__next__", LOADER)
        distributed = sys.modules["torch.distributed"]
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        for name in _API:
            function = getattr(distributed, name, None)
            if function is not None and getattr(c10d, name, None) is function:
                self._wrap(distributed, name, CALL)

    def _wrap(self, holder: Any, name: str, kind: str) -> None:
        """`holder.name` with a span of its own around each outermost call in the main thread."""
        function = getattr(holder, name)
        arrivals, main, append, clock = self, self._main, self._spans.append, perf_counter
        inside = False

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside or arrivals._off or get_ident() != main:
                return function(*args, **kwargs)
            inside, line, begun = True, "", clock()
            if kind == CALL:
                line = next(_places(sys._getframe(1)), "").partition(" ")[0]
                arrivals._calling = begun, line
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                traceback = error.__traceback__
                error.__traceback__ = traceback.tb_next if traceback else None
                raise
            finally:
                inside = False
                append((kind, begun, clock(), line))
                if kind == CALL:
                    arrivals._calling = _NO_CALL

        setattr(holder, name, timed)
        self._unwrap.append(lambda: setattr(holder, name, function))

    def _read(self) -> None:
        """Write what is new."""
        spans = [self._spans.popleft() for _ in range(len(self._spans))][-_MOST_AT_ONCE:]
        for kind, begun, ended, line in spans:
            if kind == CALL:
                self._lines.append((begun, ended, line))
        before_s, wall_ns, now = perf_counter(), time_ns(), perf_counter()
        offset_s = wall_ns / 1e9 - (before_s + now) / 2
        kinds: list[list[Any]] = []
        calls = [call for call in self._calls(offset_s, kinds) if call is not None]
        stack: list[str] = []
        if calls:
            self._last_s = max(self._last_s, calls[-1][2])
        if now - self._last_s > _STANDS_AFTER_S:
            stack = [*islice(_places(sys._current_frames().get(self._main)), _FRAMES)]
        self._write(
            type="collectives",
            host=self._host,
            at=now,
            kinds=kinds,
            calls=calls[-_MOST_AT_ONCE:],
            spans=[[kind, round(begun, 6), round(ended, 6)] for kind, begun, ended, _ in spans],
            stack=stack,
        )

    def _calls(self, offset_s: float, kinds: list[list[Any]]) -> list[Any]:
        rows: list[Any] = []
        for name in ("_dump_fr_trace", "_dump_nccl_trace"):
            dump = getattr(sys.modules.get("torch._C._distributed_c10d"), name, None)
            if dump is None or (name != "_dump_fr_trace" and not _on_cuda()):
                continue
            # with stacks the first dump took 3 s, in which the program stood still
            entries = pickle.loads(dump(True, False, False)).get("entries", [])
            newest = self._newest.get(name, -1)
            waited_for = self._unfinished.get(name, set())
            unfinished: set[int] = set()
            for entry in sorted(entries, key=lambda entry: entry["record_id"]):
                number = entry["record_id"]
                if number <= newest and number not in waited_for:
                    continue
                timed = entry.get("duration_ms") or not entry["profiling_name"].startswith("nccl")
                if not timed:
                    unfinished.add(number)
                if timed or number > newest:
                    rows.append(self._row(entry, offset_s, kinds))
                self._newest[name] = max(number, newest)
            self._unfinished[name] = unfinished
        return rows

    def _row(self, entry: dict[str, Any], offset_s: float, kinds: list[list[Any]]) -> Any:
        """None of what is not kept, or is between two ranks."""
        number = entry["collective_seq_id"]
        if entry["is_p2p"] or not _kept(number):
            return None
        at = entry["time_created_ns"] / 1e9 - offset_s
        line = self._line_at(at)
        sizes = entry["input_sizes"]
        key = (entry["profiling_name"], entry["process_group"][0], str(sizes), line)
        if key not in self._kinds:
            self._kinds[key] = len(self._kinds)
            backend, _, name = entry["profiling_name"].partition(":")
            group = "{}:{}".format(backend, entry["process_group"][0])
            of_tensors = [list(each) for each in sizes[:4]]
            kinds.append([self._kinds[key], group, name, of_tensors, line])
        took_ms = entry.get("duration_ms")
        return [self._kinds[key], number, round(at, 6), took_ms / 1e3 if took_ms else None]

    def _line_at(self, at: float) -> str:
        """The line of the program whose call this is; empty where torch makes it by itself."""
        while self._lines and self._lines[0][1] < at:
            self._lines.popleft()
        if self._lines and self._lines[0][0] <= at:
            return self._lines[0][2]
        begun, line = self._calling
        return line if begun <= at else ""

    def _forked(self) -> None:
        self._off = True
        self._ending.set()
        self._spans.clear()
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)

    def _end(self) -> None:
        """The process ends by itself: what is left."""
        if self._off:
            return
        self._ending.set()
        self._thread.join(1.0)
        try:
            self._read()
        except Exception:
            pass
        self._off = True


def _seconds_between(took_s: float) -> int:
    """Readings that take so long."""
    every = 1
    while every < _MOST_S and took_s > every * _SHARE:
        every *= 2
    return every


def _kept(number: int) -> bool:
    """Whether a collective is: the same ones on all ranks, fewer and fewer of them."""
    if number < _ALL_KEPT:
        return True
    fewer, until = _FEWER, _ALL_KEPT * _FEWER
    while number >= until:
        fewer, until = fewer * _FEWER, until * _FEWER
    return number // _BLOCK % fewer == 0


def _places(frame: Any) -> Iterator[str]:
    """The lines of the program that a frame was called from, with functions, its own one first."""
    while frame is not None:
        code = frame.f_code
        if _is_own(code):
            yield f"{os.path.basename(code.co_filename)}:{frame.f_lineno} {code.co_name}"
        frame = frame.f_back


@lru_cache(_MOST_CODES)
def _is_own(code: Any) -> bool:
    """Whether it is the program's, as samples of its stack have it."""
    own: bool = sys.modules["_gpulab_samples"]._about(code).own
    return own


def _on_cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _boot() -> str:
    """Of this start of this host: its monotonic clock is that of all its processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()[:8]
    except OSError:
        return ""
