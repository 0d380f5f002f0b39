"""Run the scenario's file in the worker: the text that the catalog read, not what the file holds by now."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from importlib.abc import ExecutionLoader
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from io import StringIO
from pathlib import Path
from types import ModuleType

import torch

from gpulab.protocol.jobs import FunctionFile, ScenarioFile
from gpulab.protocol.text import BYTE_ORDER_MARK
from gpulab.scenario import Lab, Scenario, ScenarioError, Variant, Work
from gpulab.worker.process.integrity import watch
from gpulab.worker.process.startup import FILE, timed

ANSWER, _JUDGE = "_answer", "_judge"
"""Modules of an exercise: the file that is judged, and the scenario that judges it."""


class _Text(ExecutionLoader):
    """Makes a module of a text. The cache of compiled files, which another text may have left there, is not looked at.

    Of a text, unlike bytes, Python reads no coding cookie, under which a comment could be code.
    """

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = StringIO(source.removeprefix(BYTE_ORDER_MARK), newline=None).read()
        # Tracebacks, and torch.compile and Triton through `inspect`, read lines by the path. Without a time of
        # modification they are taken from here, and never compared with the file.
        lines = StringIO(self._source if self._source.endswith("\n") else f"{self._source}\n").readlines()
        linecache.cache[path] = len(self._source), None, lines, path

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_source(self, fullname: str) -> str:
        return self._source


def load(subject: ScenarioFile | FunctionFile) -> Scenario:
    """The scenario of a file. ScenarioError where it differs from what was read as text."""
    if sha256(subject.source.encode()).hexdigest() != subject.source_sha256:
        raise ScenarioError("the text of the file is not what was read: run it again")
    with timed(FILE):
        if isinstance(subject, ScenarioFile) and subject.judge:
            # The function that is handed out must stay as fast as it was, and so must what it calls.
            watch("torch", torch)
            watch("torch.Tensor", torch.Tensor)
            watch("torch.nn.functional", torch.nn.functional)
            _execute(subject.path, subject.source, ANSWER)
            module = _execute(f"<exercise {subject.exercise}>", subject.judge, _JUDGE)
            watch("the exercise", module)
        else:
            module = _execute(subject.path, subject.source, f"_scenario_{Path(subject.path).stem}")
    if isinstance(subject, FunctionFile):
        return _scenario_of_functions(module, subject)
    scenarios = {id(value): value for value in vars(module).values() if isinstance(value, Scenario)}
    if len(scenarios) != 1:
        raise ScenarioError(f"the file made {len(scenarios)} scenarios when it ran, but its text has one")
    (scenario,) = scenarios.values()
    registered = tuple(scenario.variants)
    declared = tuple(dict.fromkeys(variant.function or variant.name for variant in subject.variants))
    contenders = any(variant.function for variant in subject.variants)  # of a final, to which not all may have come
    if registered != declared and not (contenders and set(declared) <= set(registered)):
        raise ScenarioError(
            f"the file registered the variants {', '.join(registered) or 'none'} when it ran, "
            f"but its text declares {', '.join(declared)}: register each with a plain decorator"
        )
    return _scenario_of_contenders(scenario, subject) if contenders else scenario


def _scenario_of_contenders(scenario: Scenario, subject: ScenarioFile | FunctionFile) -> Scenario:
    """The points of a sweep that its final puts beside each other: their outputs are not to be compared."""
    final = Scenario(topic=scenario.topic)
    for info in subject.variants:
        variant = scenario.variants[info.function or info.name]
        function = _with_parameters(variant.function, info.params)
        unchecked = variant.unchecked or "checked_in_its_own_run"
        final.add(Variant(name=info.name, unchecked=unchecked, function=function))
    return final


def _with_parameters(function: Callable[..., object] | None, params: Mapping[str, object]) -> Callable[..., object]:
    """The function with parameters of its own, in place of those of the run."""
    assert function is not None  # the file has been executed
    taken = {name: value for name, value in params.items() if name in signature(function).parameters}

    def build(lab: Lab, **given: object) -> object:
        return function(lab, **{**given, **taken})

    build.__signature__ = signature(function)  # type: ignore[attr-defined]
    return build


def _execute(path: str, source: str, name: str) -> ModuleType:
    sys.path.insert(0, str(Path(path).parent))
    sys.dont_write_bytecode = True
    sys.argv = [path]
    loader = _Text(path, source)
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # what the file pickles must be importable again
    loader.exec_module(module)
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
