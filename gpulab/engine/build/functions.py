"""Plain functions as variants: what each is called with, and how one step runs it to its end."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from gpulab.core.findings import Finding
from gpulab.core.jobs import FunctionFile
from gpulab.engine.findings import async_function, generator_function
from gpulab.scenario import Lab, Scenario, ScenarioError, Variant, Work

Function = Callable[..., Any]


def scenario_of_functions(
    module: ModuleType, module_of_arguments: ModuleType, subject: FunctionFile
) -> Scenario:
    """A variant for each function that is named. ScenarioError where one is not there."""
    make = None
    if subject.arguments:
        make = _function(module_of_arguments, subject.arguments.function, subject.arguments.path)
    scenario = Scenario(topic="functions")
    for info in subject.variants:
        function = _function(module, info.name, subject.path)
        built = partial(_build, function, make)
        scenario.add(Variant(name=info.name, unchecked=info.unchecked, function=built))
    return scenario


def kind_of(variant: Variant) -> Finding | None:
    """What is to be said of a function that does not run to its end by being called."""
    assert isinstance(variant.function, partial)
    function = variant.function.args[0]
    if _is_async(function):
        return async_function(variant.name)
    if inspect.isgeneratorfunction(function):
        return generator_function(variant.name)
    return None


def _function(module: ModuleType, name: str, path: str) -> Function:
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        function = None
    if not callable(function):
        raise ScenarioError(f"{name} is not a function in {Path(path).name} once it has run")
    return function  # type: ignore[no-any-return]


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _build(function: Function, make: Function | None, lab: Lab) -> Work | Iterator[Work]:
    arguments, keywords = made(function, make, lab) if make else ((), {})
    call = partial(function, *arguments, **keywords) if arguments or keywords else function
    if _is_async(function):
        return _in_event_loop(call)
    if inspect.isgeneratorfunction(function):
        return Work(partial(_exhaust, call))
    return Work(call)


def made(function: Function, make: Function, lab: Lab) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """What `make` returns, as positional arguments and keywords. ScenarioError where the function
    does not take them.
    """
    name = getattr(make, "__name__", "the function of --with")
    takes_device = "device" in inspect.signature(make).parameters
    returned = make(device=lab.device) if takes_device else make()
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


def _exhaust(call: Callable[[], Iterator[Any]]) -> None:
    deque(call(), maxlen=0)


def _in_event_loop(call: Callable[[], Any]) -> Iterator[Work]:
    loop = asyncio.new_event_loop()
    try:
        yield Work(lambda: loop.run_until_complete(_to_end(call)))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _to_end(call: Callable[[], Any]) -> Any:
    called = call()
    if not inspect.isasyncgen(called):
        return await called
    async for _ in called:
        pass
    return None
