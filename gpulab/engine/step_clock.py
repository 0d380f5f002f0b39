"""The clock of a step: times a block of them in every process that takes any, and waits for what
they return.

A device is waited for as a whole. Other things that a step returns are waited for one by one: JAX
arrays, futures, and objects with `__dlpack__`, which may compute only when asked for their values.

It needs nothing but the standard library: a side of a comparison may run in a Python that has
neither gpulab nor torch.
"""

from __future__ import annotations

import resource
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic, perf_counter_ns, thread_time_ns
from typing import Any, NamedTuple

THERE: set[type] = {type(None), bool, int, float, str, bytes}
"""Types that are complete once a device is idle; subclasses may compute later."""
_ARRAYS = ("numpy", "cupy", "jax", "jaxlib", "torch")
"""Packages whose arrays compute nothing when their memory is handed over."""
_FUTURES = (
    ("concurrent.futures", "Future", "result"),
    ("torch.futures", "Future", "wait"),
    ("torch.distributed", "Work", "wait"),
    ("multiprocessing.pool", "ApplyResult", "get"),
)
"""By their modules, with what waits for their values."""


class Block(NamedTuple):
    """One sample. Seconds are per step; faults and switches are of the whole block."""

    time_s: float
    cpu_s: float
    faults: int
    switches: int
    ended: float
    """On the monotonic clock, which all processes share."""
    steps: int
    sm_mhz: float = 0.0
    """The clock of the SMs just before it, by the device clock's spin; 0 without a spin."""


def know_torch() -> None:
    """Count torch's tensors among what is complete, where torch is imported."""
    torch = sys.modules.get("torch")
    if torch is not None:
        parameters = torch.nn
        THERE.update({torch.Tensor, parameters.Parameter})
        THERE.update({parameters.Buffer} if hasattr(parameters, "Buffer") else ())


def call_each(calls: Iterable[Callable[[], Any]]) -> Any:
    """Call steps one after the other; what the last one returned. All steps are called here, timed
    or checked.
    """
    returned = None
    for call in calls:
        returned = None  # what nobody keeps is gone before the next step
        returned = call()
    return returned


def timed(
    calls: Iterable[Callable[[], object]], steps: int, wait: Callable[[], object]
) -> tuple[Block, object]:
    """Time a block of calls, with the device idle before and after, as `wait` waits for it; the
    block, and what the last step returned.
    """
    wait()
    before = resource.getrusage(resource.RUSAGE_THREAD)
    cpu = thread_time_ns()
    started = perf_counter_ns()
    returned = call_each(calls)
    if type(returned) not in THERE:
        wait_for(returned)
    wait()
    ended = perf_counter_ns()
    cpu = thread_time_ns() - cpu
    after = resource.getrusage(resource.RUSAGE_THREAD)
    share = 1e-9 / (steps or 1)
    block = Block(
        (ended - started) * share,
        cpu * share,
        after.ru_minflt - before.ru_minflt,
        after.ru_nivcsw - before.ru_nivcsw,
        monotonic(),
        steps,
    )
    return block, returned[-1] if isinstance(returned, deque) else returned


def wait_for(result: object) -> None:
    """Return once all that a step returned is there."""
    if type(result) not in THERE:
        for wait in _ways(result):
            wait()


def is_asynchronous(result: object) -> bool:
    """Return whether something in what a step returned has to be waited for."""
    return type(result) not in THERE and any(True for _ in _ways(result))


def paced(step: Callable[[], object], returned: object) -> Callable[[], object]:
    """The step itself where its result was complete; else one that waits for the result of some
    steps ago, and returns all that are still running. `returned`: what the step returned last.
    """
    if not is_asynchronous(returned):
        return step
    wait_for(returned)
    running: deque[object] = deque()

    def paced_step() -> deque[object]:
        running.append(step())
        # enough to hide what it takes to start the next
        if len(running) > 8:
            wait_for(running.popleft())
        return running

    return paced_step


def _ways(result: object) -> Iterator[Callable[[], object]]:
    """Yield functions that wait for each part of a result."""
    kind = type(result)
    if kind in THERE:
        return
    if isinstance(result, (list, tuple, deque)):
        for part in result:
            yield from _ways(part)
    elif isinstance(result, Mapping):
        for part in result.values():
            yield from _ways(part)
    elif value := value_later(result):
        yield lambda: wait_for(value())
    else:
        # arrays of JAX; tensors of torch's collectives
        for name in ("block_until_ready", "trigger_wait"):
            if callable(method := getattr(kind, name, None)):
                yield lambda method=method: method(result)  # type: ignore[misc]
        if kind.__module__.partition(".")[0] not in _ARRAYS and hasattr(kind, "__dlpack__"):
            yield lambda: result.__dlpack__()  # type: ignore[attr-defined]


def value_later(value: object) -> Callable[[], Any] | None:
    """Return what waits for the value of a future, and returns it; None of anything else."""
    for module, name, wait in _FUTURES:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return getattr(value, wait)  # type: ignore[no-any-return]
    return None
