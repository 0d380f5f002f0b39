"""Import the scenario's file in the worker, and refuse it where it is not what the catalog read."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from gpulab.protocol.jobs import FunctionFile, ScenarioFile
from gpulab.scenario import Lab, Scenario, ScenarioError, Variant, Work


def load(subject: ScenarioFile | FunctionFile) -> Scenario:
    """The scenario of a file. ScenarioError where it differs from what was read as text."""
    path = Path(subject.path)
    if sha256(path.read_bytes()).hexdigest() != subject.source_sha256:
        raise ScenarioError("the file has changed since it was read: run it again")
    module = _execute(path)
    if isinstance(subject, FunctionFile):
        return _scenario_of_functions(module, subject)
    scenarios = {id(value): value for value in vars(module).values() if isinstance(value, Scenario)}
    if len(scenarios) != 1:
        raise ScenarioError(f"the file made {len(scenarios)} scenarios when it ran, but its text has one")
    (scenario,) = scenarios.values()
    registered, declared = tuple(scenario.variants), tuple(variant.name for variant in subject.variants)
    if registered != declared:
        raise ScenarioError(
            f"the file registered the variants {', '.join(registered) or 'none'} when it ran, "
            f"but its text declares {', '.join(declared)}: register each with a plain decorator"
        )
    return scenario


def _execute(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    sys.argv = [str(path)]
    name = f"_scenario_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what the file pickles must be importable again
    spec.loader.exec_module(module)
    return module


def _scenario_of_functions(module: ModuleType, subject: FunctionFile) -> Scenario:
    scenario = Scenario(topic="functions")
    for info in subject.variants:
        function = getattr(module, info.name, None)
        if not callable(function):
            raise ScenarioError(f"{info.name} is not a function in {Path(subject.path).name} once it has run")
        scenario.add(Variant(name=info.name, unchecked=info.unchecked, function=partial(_build, function)))
    return scenario


def _build(step: Callable[[], object], lab: Lab) -> Work:
    return Work(step)
