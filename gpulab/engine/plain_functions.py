"""Plain functions as steps: what each is called with, and how one step runs it to its end.

It needs nothing but the standard library, as a side of a comparison does.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from gpulab.scenario import ScenarioError, Work

Function = Callable[..., Any]
Arguments = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional ones, and keywords."""


def function_of(module: ModuleType, name: str, path: str) -> Function:
    """Return a function of a module, also of a class in it. ScenarioError where it is not there."""
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        function = None
    if not callable(function):
        raise ScenarioError(f"{name} is not a function in {Path(path).name} once it has run")
    return function  # type: ignore[no-any-return]


def is_async(function: Function) -> bool:
    """Return whether a call only makes what an event loop has to run."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def work_of(
    function: Function, arguments: Arguments, *, keeps: bool = False
) -> Work | Iterator[Work]:
    """Make a step of a function, called with these arguments: it runs to its end each time.

    `keeps`: the step of a generator returns what it yielded, for a comparison; timed it returns
    nothing.
    """
    given, keywords = arguments
    call = partial(function, *given, **keywords) if given or keywords else function
    if is_async(function):
        return _looped_work(call, keeps=keeps)
    if inspect.isgeneratorfunction(function):
        return Work(partial(_collect if keeps else _exhaust, call))
    return Work(call)


def yields(function: Function) -> bool:
    """Return whether a function is a generator, of an event loop too."""
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def made(function: Function, make: Function, device: Callable[[], Any]) -> Arguments:
    """Return what `make` returns, as positional arguments and keywords. `device` gives it that of
    the run, as torch's, where it asks for it. ScenarioError where the function does not take them.
    """
    name = getattr(make, "__name__", "the function of --with")
    takes_device = "device" in inspect.signature(make).parameters
    returned = make(device=device()) if takes_device else make()
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
        raise ScenarioError(
            f"--with: {name} is an {'async' if inspect.iscoroutine(returned) else 'iterating'} "
            "function: write one that returns a tuple, a dict, or one value"
        )
    arguments: Sequence[Any] = ()
    keywords: Mapping[str, Any] = {}
    if isinstance(returned, dict):
        keywords = returned
    else:
        arguments = returned if isinstance(returned, tuple) else (returned,)
    try:
        inspect.signature(function).bind(*arguments, **keywords)
    except TypeError as error:
        raise ScenarioError(
            f"--with: {getattr(function, '__qualname__', 'the function')} does not take what "
            f"{name} returned: {error}"
        ) from None
    except ValueError:  # a function in C may have no signature
        pass
    return arguments, keywords


def seed_everything(seed: int) -> None:
    """Seed every generator that is there, so that all see the same data."""
    random.seed(seed)
    if torch := sys.modules.get("torch"):
        if torch.backends.cuda.is_built():
            torch.manual_seed(seed)
        else:  # for a GPU to come, it would keep a traceback of each call
            torch.default_generator.manual_seed(seed)
    for name in ("numpy", "cupy"):
        if module := sys.modules.get(name):
            module.random.seed(seed % 2**32)


def _exhaust(call: Callable[[], Iterator[Any]]) -> None:
    deque(call(), maxlen=0)


def _collect(call: Callable[[], Iterator[Any]]) -> tuple[list[Any], Any]:
    """Return what it yielded, and what it returned."""
    yielded = []
    iterator = call()
    while True:
        try:
            yielded.append(next(iterator))
        except StopIteration as ended:
            return yielded, ended.value


def _looped_work(call: Callable[[], Any], *, keeps: bool) -> Iterator[Work]:
    import asyncio  # 60 ms, which each server of a side would take

    loop = asyncio.new_event_loop()
    try:
        yield Work(lambda: loop.run_until_complete(_awaited(call, keeps=keeps)))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _awaited(call: Callable[[], Any], *, keeps: bool) -> Any:
    called = call()
    if not inspect.isasyncgen(called):
        return await called
    if keeps:
        return [item async for item in called]
    async for _ in called:
        pass
    return None
