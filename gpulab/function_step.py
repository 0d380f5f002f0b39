"""A function of a program as the steps of a scenario's variants: its file is run anew for each
build, so that every variant has a model, an optimizer and data of its own. The file is never
edited.
"""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from gpulab.core.packages import module_name, package_of
from gpulab.engine.build.build import OwnReading
from gpulab.scenario import Lab, ScenarioError, Work

_DEEPEST = 4
_MOST_OBJECTS = 20_000
_NO_SIZE, _NOT_MOVED = 1e-6, 1e-12


class BuiltStep:
    """One build: what a step calls, and what was found in the program. A fix changes these in
    place.
    """

    def __init__(
        self,
        lab: Lab,
        module: ModuleType,
        call: Callable[[], Any],
        arguments: tuple[Sequence[Any], Mapping[str, Any]],
    ) -> None:
        self.lab = lab
        self.module = module
        self.call = call
        self.arguments = arguments
        self.names = {**vars(module), "args": arguments[0], "keywords": arguments[1]}
        """What an expression of `inputs` and `state` may name."""
        roots = [("args", arguments[0]), ("keywords", arguments[1]), *_data_of(module)]
        named = list(_objects(roots))
        found = [value for _, value in named]
        all_modules = [value for value in found if isinstance(value, torch.nn.Module)]
        parts = {id(part) for module in all_modules for part in list(module.modules())[1:]}
        self.modules = [module for module in all_modules if id(module) not in parts]
        self.optimizers = [value for value in found if isinstance(value, Optimizer)]
        self.loaders: list[DataLoader[Any]] = [
            value for value in found if isinstance(value, DataLoader)
        ]
        self.tensors = {
            expression: value
            for expression, value in named
            if expression and isinstance(value, torch.Tensor)
        }
        """By the expressions for them."""
        self.contexts: list[Callable[[], AbstractContextManager[Any]]] = []
        """Entered around each block, outside the clock."""
        self.dtype: str | None = None
        self.closing: list[Callable[[], object]] = []
        """Called when the build is torn down."""
        self.returned: Any = None
        self._before = [each.detach().clone() for each in self.parameters]

    @property
    def called_modules(self) -> list[torch.nn.Module]:
        """The outermost modules that can be called: of a list or dict of modules, those in it."""
        found: list[torch.nn.Module] = []
        waiting = [*reversed(self.modules)]
        while waiting:
            module = waiting.pop()
            if type(module).forward is torch.nn.Module.forward:
                waiting.extend(reversed([*module.children()]))
            else:
                found.append(module)
        return found

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return [parameter for module in self.modules for parameter in module.parameters()]

    def computes_in(self, dtype: str) -> None:
        """The lowest precision of all fixes is the one by which the output is checked."""
        if self.dtype != "bf16":
            self.dtype = dtype

    def runs_with(self, owner: Any, name: str, value: object) -> None:
        """While it runs, this attribute has another value."""

        @contextmanager
        def changed() -> Iterator[None]:
            before = getattr(owner, name)
            setattr(owner, name, value)
            try:
                yield
            finally:
                setattr(owner, name, before)

        self.contexts.append(changed)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """All contexts, in their order."""
        with ExitStack() as stack:
            for context in self.contexts:
                stack.enter_context(context())
            yield

    def evaluated(self, expressions: Sequence[str]) -> list[Any]:
        """Values of names, attributes and items in the program, such as "args[0]"."""
        return [eval(expression, dict(self.names)) for expression in expressions]

    def step(self) -> Any:
        self.returned = self.call()
        return self.returned

    def output(self) -> Any:
        """Return what the step returned, numbers as tensors, and how far each parameter has moved;
        where there is neither, gradients.
        """
        output = [*_numbers_as_tensors(self.returned), *self._moved()]
        if output:
            return output
        gradients = [each.grad for each in self.parameters if each.grad is not None]
        return gradients or self.parameters

    def _moved(self) -> list[torch.Tensor]:
        """The norm of what each parameter has moved since the build, relative to its own, as a
        power of ten: one that stays where it was, or moves twice as far, shows beside all others.

        Nothing where none has moved, or they are on several devices.
        """
        parameters = [each.detach() for each in self.parameters]
        if not parameters or len({each.device for each in parameters}) > 1:
            return []
        norms = torch._foreach_norm(torch._foreach_sub(parameters, self._before))
        sizes = torch._foreach_norm(self._before)
        moved = torch.stack([each.float() for each in norms])
        relative = moved / (torch.stack([each.float() for each in sizes]) + _NO_SIZE)
        if not bool(relative.any()):
            return []
        return [relative.clamp_min(_NOT_MOVED).log10()]


class FunctionStep:
    """`file:function`, called with what `arguments` (FILE:function) makes.

    `inputs` and `state` are expressions for tensors of the program beside its models and
    optimizers: what a step reads, and what it changes.
    """

    def __init__(
        self,
        file: str,
        function: str,
        *,
        arguments: str | None = None,
        inputs: Sequence[str] = (),
        state: Sequence[str] = (),
    ) -> None:
        self._file = Path(file)
        self._function = function
        self._arguments = arguments
        self._inputs = tuple(inputs)
        self._state = tuple(state)
        for folder in (package_of(self._file)[0], self._file.absolute().parent):
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))

    def build(self, lab: Lab) -> BuiltStep:
        """Run the file, and make the arguments. ScenarioError where there is no such function."""
        module = _run(self._file)
        function = _function_of(module, self._function)
        arguments: tuple[Sequence[Any], Mapping[str, Any]] = ((), {})
        if self._arguments:
            from gpulab.engine.plain_functions import made

            arguments = made(function, self._maker(module), lambda: lab.device)
        given, keywords = arguments
        return BuiltStep(lab, module, lambda: function(*given, **keywords), arguments)

    def work(self, lab: Lab, *fixes: Callable[[BuiltStep], object]) -> Iterator[Work]:
        """The step with these fixes; what they opened is closed when the build is torn down."""
        built = self.build(lab)
        for fix in fixes:
            fix(built)
        try:
            yield Work(
                built.step,
                inputs=built.evaluated(self._inputs),
                state=[built.modules, built.optimizers, built.evaluated(self._state)],
                output=OwnReading(built.output),
                context=built.entered if built.contexts else None,
                dtype=built.dtype,
            )
        finally:
            for close in built.closing:
                close()

    def _maker(self, module: ModuleType) -> Callable[..., Any]:
        assert self._arguments is not None
        file, colon, name = self._arguments.rpartition(":")
        same = not colon or Path(file).absolute() == self._file.absolute()
        return _function_of(module if same else _run(Path(file)), name)


def _run(file: Path) -> ModuleType:
    """The module of a file that is run now, whatever was imported before."""
    name = module_name(file, file.stem)
    module = ModuleType(name)
    module.__file__ = str(file)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = sys.modules[file.stem] = module  # a file with arguments may import it
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), vars(module))
    return module


def _function_of(module: ModuleType, name: str) -> Callable[..., Any]:
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        function = None
    if not callable(function):
        raise ScenarioError(f"{name} is not a function in {module.__file__} once it has run")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ScenarioError(f"{name} does not run to its end when it is called: wrap it")
    return function  # type: ignore[no-any-return]


def _data_of(module: ModuleType) -> list[tuple[str, Any]]:
    """Variables of the program's own, by name."""
    return [
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("__") and not isinstance(value, (ModuleType, type))
    ]


def _objects(roots: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Models, optimizers, loaders and tensors within, each once, with an expression for it; empty
    of what no expression reaches.
    """
    seen: set[int] = set()
    waiting = deque((expression, value, _DEEPEST) for expression, value in roots)
    while waiting and len(seen) < _MOST_OBJECTS:
        expression, value, depth = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (torch.nn.Module, Optimizer, DataLoader, torch.Tensor)):
            yield expression, value
        if depth:
            waiting.extend((named, part, depth - 1) for named, part in _parts(expression, value))


def _parts(expression: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(_within(expression, f"[{index}]"), part) for index, part in enumerate(value)]
    if isinstance(value, Mapping):
        return [(_within(expression, f"[{key!r}]"), part) for key, part in value.items()]
    if isinstance(value, (torch.nn.Module, Optimizer, torch.Tensor, ModuleType, type)):
        return []
    if isinstance(value, DataLoader):
        return [(_within(expression, ".dataset"), value.dataset)]
    if inspect.isfunction(value):
        return [("", cell.cell_contents) for cell in value.__closure__ or () if _is_filled(cell)]
    if inspect.ismethod(value):
        return [(_within(expression, ".__self__"), value.__self__)]
    module = type(value).__module__
    if module.startswith(("torch", "numpy", "builtins")) and ".data." not in module:
        return []
    attributes = getattr(value, "__dict__", {})
    return [(_within(expression, f".{name}"), part) for name, part in attributes.items()]


def _within(expression: str, part: str) -> str:
    return expression + part if expression else ""


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _numbers_as_tensors(returned: Any) -> Iterator[torch.Tensor]:
    """Tensors and numbers in what a step returned; single values on the CPU, in fp32."""
    if isinstance(returned, torch.Tensor):
        yield returned.detach() if returned.dim() else returned.detach().float().cpu()
    elif isinstance(returned, (bool, int, float)):
        yield torch.tensor(float(returned))
    elif isinstance(returned, Mapping):
        for value in returned.values():
            yield from _numbers_as_tensors(value)
    elif isinstance(returned, (list, tuple)):
        for value in returned:
            yield from _numbers_as_tensors(value)
