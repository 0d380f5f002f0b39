"""Run the scenario's file in the worker: the text that the catalog read, not what the file holds by
now.
"""

from __future__ import annotations

import importlib._bootstrap
import linecache
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib.abc import ExecutionLoader
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from io import StringIO
from pathlib import Path
from time import perf_counter
from types import ModuleType

from gpulab.core.jobs import FunctionFile, ScenarioFile
from gpulab.core.packages import module_name, package_of
from gpulab.core.text import BYTE_ORDER_MARK
from gpulab.engine.build import settings
from gpulab.engine.build.exercise import ANSWER
from gpulab.engine.build.functions import scenario_of_functions
from gpulab.engine.processes.startup import FILE, timed
from gpulab.features import modules
from gpulab.scenario import Lab, Scenario, ScenarioError, Variant

_LONG_S = 0.1
_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_BEFORE_CUDA = (
    "numpy",
    "scipy",
    "pandas",
    "sklearn",
    "sympy",
    "networkx",
    "transformers",
    "torch._dynamo",
    "torch._inductor",
)
"""What asks for no device while it is imported. After `cuInit` no forked process can use CUDA: of
all else on a GPU each process imports its own.
"""


class LongImports:
    """Times the imports of a process until it is told to `end`: of libraries that neither start a
    thread nor fork.
    """

    def __init__(self, device: str) -> None:
        self._on_cpu = device == "cpu"
        self._inside = 0
        """Libraries that are being imported, one by another."""
        self._modules: list[str] = []
        self._load: Callable[[ModuleSpec], ModuleType] = importlib._bootstrap._load_unlocked  # type: ignore[attr-defined]
        importlib._bootstrap._load_unlocked = self._timed  # type: ignore[attr-defined]

    @property
    def modules(self) -> list[str]:
        """The long ones so far, in their order, without those that another of them imported."""
        return list(self._modules)

    def end(self) -> None:
        importlib._bootstrap._load_unlocked = self._load  # type: ignore[attr-defined]

    def _timed(self, spec: ModuleSpec) -> ModuleType:
        if self._inside or not (spec.origin or "").startswith(_LIBRARIES):
            return self._load(spec)
        self._inside += 1
        threads = _threads()
        started = perf_counter()
        try:
            module = self._load(spec)
        finally:
            self._inside -= 1
        if (
            perf_counter() - started > _LONG_S
            and _threads() == threads
            and (self._on_cpu or spec.name.startswith(_BEFORE_CUDA))
        ):
            self._modules.append(spec.name)
        return module


def _threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


class _Text(ExecutionLoader):
    """Makes a module of a text. The cache of compiled files, which another text may have left
    there, is not looked at.

    Of a text, unlike bytes, Python reads no coding cookie, under which a comment could be code.
    """

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = StringIO(source.removeprefix(BYTE_ORDER_MARK), newline=None).read()
        # Tracebacks, and torch.compile and Triton through `inspect`, read lines by the path.
        # Without a time of modification they are taken from here, and never compared with the file.
        lines = StringIO(
            self._source if self._source.endswith("\n") else f"{self._source}\n"
        ).readlines()
        linecache.cache[path] = len(self._source), None, lines, path

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_source(self, fullname: str) -> str:
        return self._source


def load(subject: ScenarioFile | FunctionFile) -> Scenario:
    """The scenario of a file. ScenarioError where it differs from what was read as text."""
    with timed(FILE):
        if isinstance(subject, ScenarioFile) and subject.judge:
            before = settings.read()
            _execute(subject.path, subject.source, ANSWER)
            settings.put_back(before)  # the function that is handed out runs as it was handed out
            # the module of the scenario that judges an exercise
            module = _execute(f"<exercise {subject.exercise}>", subject.judge, "_judge")
        else:
            module = _execute(subject.path, subject.source, _name_of(subject.path, "_scenario"))
    if isinstance(subject, FunctionFile):
        return scenario_of_functions(module, _module_of_arguments(module, subject), subject)
    scenarios = {id(value): value for value in vars(module).values() if isinstance(value, Scenario)}
    if len(scenarios) != 1:
        raise ScenarioError(
            f"the file made {len(scenarios)} scenarios when it ran, but its text has one"
        )
    (scenario,) = scenarios.values()
    registered = tuple(scenario.variants)
    declared = tuple(
        dict.fromkeys(variant.function or variant.name for variant in subject.variants)
    )
    # of a final, to which not all may have come
    contenders = any(variant.function for variant in subject.variants)
    if registered != declared and not (contenders and set(declared) <= set(registered)):
        raise ScenarioError(
            f"the file registered the variants {', '.join(registered) or 'none'} when it ran, "
            f"but its text declares {', '.join(declared)}: register each with a plain decorator"
        )
    for feature in modules("loading"):
        if (derived := feature.derived_scenario(scenario, subject)) is not None:
            made: Scenario = derived
            return made
    return _scenario_of_contenders(scenario, subject) if contenders else scenario


def _scenario_of_contenders(scenario: Scenario, subject: ScenarioFile | FunctionFile) -> Scenario:
    """The points of a sweep that its final puts side by side: outputs are not compared."""
    final = Scenario(topic=scenario.topic)
    for info in subject.variants:
        variant = scenario.variants[info.function or info.name]
        function = _bind_params(variant.function, info.params)
        unchecked = variant.unchecked or "checked in its own run"
        final.add(Variant(name=info.name, unchecked=unchecked, function=function))
    return final


def _bind_params(
    function: Callable[..., object] | None, params: Mapping[str, object]
) -> Callable[..., object]:
    """The function with parameters of its own, in place of those of the run."""
    assert function is not None  # the file has been executed
    taken = {
        name: value for name, value in params.items() if name in signature(function).parameters
    }

    def build(lab: Lab, **given: object) -> object:
        return function(lab, **{**given, **taken})

    build.__signature__ = signature(function)  # type: ignore[attr-defined]
    return build


def _execute(path: str, source: str, name: str) -> ModuleType:
    sys.path[:0] = dict.fromkeys([str(Path(path).parent), str(package_of(Path(path))[0])])
    sys.dont_write_bytecode = True
    sys.argv = [path]
    loader = _Text(path, source)
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # what the file pickles must be importable again
    loader.exec_module(module)
    return module


def _module_of_arguments(module: ModuleType, subject: FunctionFile) -> ModuleType:
    arguments = subject.arguments
    if arguments is None or not arguments.source:
        return module
    # it may import the file of the functions, whose classes must be the same ones
    sys.modules.setdefault(Path(subject.path).stem, module)
    name = _name_of(arguments.path, "_arguments")
    return _execute(arguments.path, arguments.source, name)


def _name_of(path: str, kind: str) -> str:
    """In its package, so that it may import relatively; of no name that it could import itself."""
    return module_name(Path(path), f"{kind}_{Path(path).stem}")
