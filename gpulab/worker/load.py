"""Import the scenario's file in the worker, and refuse it where it is not what the catalog read."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from gpulab.model.request import RunRequest
from gpulab.model.scenario import Lab, Scenario, ScenarioError, Variant, Work


def load(request: RunRequest) -> Scenario:
    """The scenario that the request names. ScenarioError where it differs from what was read as text."""
    if sha256(Path(request.path).read_bytes()).hexdigest() != request.source_sha256:
        raise ScenarioError("the file has changed since it was read: run it again")
    module = _execute(Path(request.path))
    if request.functions:
        return _of_functions(module, request)
    found = [value for value in vars(module).values() if isinstance(value, Scenario)]
    if len(set(map(id, found))) != 1:
        raise ScenarioError(f"the file made {len(found)} scenarios when it ran, and one when it was read")
    registered, read = tuple(found[0].variants), tuple(variant.name for variant in request.variants)
    if registered != read:
        raise ScenarioError(
            f"the file registered the variants {', '.join(registered) or 'none'} when it ran, "
            f"but its text says {', '.join(read)}: register each with a plain decorator"
        )
    return found[0]


def _execute(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    sys.argv = [str(path)]
    name = f"_scenario_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what the file pickles must be found again
    spec.loader.exec_module(module)
    return module


def _of_functions(module: ModuleType, request: RunRequest) -> Scenario:
    scenario = Scenario(topic="functions")
    for info in request.variants:
        function = getattr(module, info.name, None)
        if not callable(function):
            raise ScenarioError(f"{info.name} is not a function in {Path(request.path).name} once it has run")
        build = partial(_build, function)
        scenario.add(Variant(name=info.name, unchecked=info.unchecked, function=build))
    return scenario


def _build(step: Callable[[], object], lab: Lab) -> Work:
    return Work(step)
