"""Plain functions as variants."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from types import ModuleType

from gpulab.core.findings import Finding
from gpulab.core.jobs import FunctionFile
from gpulab.engine.findings import async_function, generator_function
from gpulab.engine.plain_functions import Function, function_of, is_async, made, work_of
from gpulab.scenario import Lab, Scenario, Variant, Work


def scenario_of_functions(
    module: ModuleType, module_of_arguments: ModuleType, subject: FunctionFile
) -> Scenario:
    """A variant for each function that is named. ScenarioError where one is not there."""
    make = None
    if subject.arguments:
        make = function_of(module_of_arguments, subject.arguments.function, subject.arguments.path)
    scenario = Scenario(topic="functions")
    for info in subject.variants:
        function = function_of(module, info.name, subject.path)
        built = partial(_build, function, make)
        scenario.add(Variant(name=info.name, unchecked=info.unchecked, function=built))
    return scenario


def kind_of(variant: Variant) -> Finding | None:
    """Describe why a function does not run to its end by being called."""
    assert isinstance(variant.function, partial)
    function = variant.function.args[0]
    if is_async(function):
        return async_function(variant.name)
    if inspect.isgeneratorfunction(function):
        return generator_function(variant.name)
    return None


def _build(function: Function, make: Function | None, lab: Lab) -> Work | Iterator[Work]:
    return work_of(function, made(function, make, lambda: lab.device) if make else ((), {}))
