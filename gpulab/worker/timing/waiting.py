"""Waiting, inside the clock, for what a step returns: an array or a future that is still being computed.

A device is waited for as a whole. This is for the rest: JAX arrays on any device, futures, and objects that nobody
knows, which are asked for their values, so that what they compute only then is in the step's time.
"""

from __future__ import annotations

import concurrent.futures
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import torch

from gpulab.worker.building.build import Build

THERE = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, type(None), bool, int, float, str, bytes})
"""Types of what is there once a device is idle; subclasses may do what they like."""
_ARRAYS = ("numpy", "cupy", "jax", "jaxlib", "torch")
"""Packages whose arrays compute nothing when their memory is handed over."""
_MOST_RUNNING = 8
"""Results that are not waited for yet: enough to hide what it takes to start the next."""


def wait_for(result: object) -> None:
    """Return once all that a step returned is there."""
    if type(result) not in THERE:
        for wait in _ways(result):
            wait()


def is_asynchronous(result: object) -> bool:
    """Whether something in what a step returned has to be waited for."""
    return type(result) not in THERE and any(True for _ in _ways(result))


def returns_later(build: Build) -> bool:
    """Whether a step returns what has to be waited for: torch's events see nothing of the work of other libraries."""
    with build.context():
        returned = build.work.step()
    later = is_asynchronous(returned)
    wait_for(returned)
    return later


def paced(step: Callable[[], object], returned: object) -> Callable[[], object]:
    """The step as it is where its result was there; else one that waits for results of some steps ago.

    It then returns all that are still running. `returned` is what it returned last.
    """
    if not is_asynchronous(returned):
        return step
    wait_for(returned)
    running: deque[object] = deque()

    def paced_step() -> deque[object]:
        running.append(step())
        if len(running) > _MOST_RUNNING:
            wait_for(running.popleft())
        return running

    return paced_step


def _ways(result: object) -> Iterator[Callable[[], object]]:
    """What waits for each part of a result."""
    kind = type(result)
    if kind in THERE:
        return
    if isinstance(result, (list, tuple, deque)):
        for part in result:
            yield from _ways(part)
    elif isinstance(result, Mapping):
        for part in result.values():
            yield from _ways(part)
    elif isinstance(result, concurrent.futures.Future):
        yield lambda: wait_for(result.result())
    elif _is_future(result):
        yield lambda: wait_for(result.wait())  # type: ignore[attr-defined]
    else:
        for name in ("block_until_ready", "trigger_wait"):  # arrays of JAX; tensors of torch's collectives
            if callable(method := getattr(kind, name, None)):
                yield lambda method=method: method(result)  # type: ignore[misc]
        if kind.__module__.partition(".")[0] not in _ARRAYS and hasattr(kind, "__dlpack__"):
            yield lambda: result.__dlpack__()  # type: ignore[attr-defined]


def _is_future(result: object) -> bool:
    """Futures of torch and of pools of processes, by modules that are imported where there are any."""
    kinds = (
        ("torch.futures", "Future"),
        ("torch.distributed", "Work"),
        ("multiprocessing.pool", "ApplyResult"),
    )
    for module, name in kinds:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(result, kind):
            return True
    return False
