"""One step of a program under hooks, and what was seen of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

from gpulab.core.jobs import StepRequest
from gpulab.engine.build.build import seed_everything
from gpulab.engine.processes.device import open_device
from gpulab.features.trials.facts import LoaderFacts, OptimizerFacts, StepFacts
from gpulab.function_step import BuiltStep, FunctionStep
from gpulab.scenario import Lab

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mkldnn_linear")
_CONVOLUTIONS = ("convolution", "mkldnn_convolution", "cudnn_convolution", "_convolution")
_READS = ("item", "__bool__", "__float__", "__int__", "tolist", "__index__")
_DTYPES = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float64: "fp64",
}
_MOST_INPUTS = 50
_TORCH = str(Path(torch.__file__).parent)


def look(request: bytes) -> StepFacts:
    """In a process of its own: what a `StepRequest` asks."""
    return facts_of(msgspec.json.decode(request, type=StepRequest))


def facts_of(request: StepRequest) -> StepFacts:
    """Take one step as it is, and one under hooks."""
    device, _ = open_device(request.device, request.threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    step = FunctionStep(request.file, request.function, arguments=request.arguments)
    seed_everything(0)
    built = step.build(cast(Lab, SimpleNamespace(device=device)))
    built.call()  # an optimizer makes its state, a library sets itself up
    calls = _WatchedCalls(device)
    called = built.called_modules
    before = {expression: tensor._version for expression, tensor in built.tensors.items()}
    compiled = any(_is_compiled(model) for model in (*built.modules, *called))
    with calls.watching(functions_only=compiled):
        built.call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return _facts(built, device, calls, before, compiled=compiled)


def _facts(
    built: BuiltStep,
    device: torch.device,
    calls: _WatchedCalls,
    before: dict[str, int],
    *,
    compiled: bool,
) -> StepFacts:
    own = {
        id(each) for model in built.modules for each in model.state_dict(keep_vars=True).values()
    }
    inputs, state = [], []
    for expression, tensor in built.tensors.items():
        if id(tensor) in own:
            continue
        if tensor._version != before[expression]:
            state.append(expression)
        elif _storage(tensor) in calls.read:
            inputs.append(expression)
    models = [model for model in built.called_modules if id(model) in calls.modules]
    parts = [part for model in models for part in model.modules()]
    images = [part for part in parts if isinstance(part, torch.nn.Conv2d)]
    on_gpu = device.type == "cuda"
    return StepFacts(
        device=device.type,
        capability=torch.cuda.get_device_capability(device) if on_gpu else None,
        bf16=_has_bf16(device),
        tf32="tf32" in (_precision(torch.backends), _precision(torch.backends.cuda.matmul)),
        benchmark=torch.backends.cudnn.benchmark,
        compiler=_compiler_problem(device),
        cores=len(os.sched_getaffinity(0)),
        models=len(models),
        not_called=len(built.called_modules) - len(models),
        compiled=compiled,
        autocast=calls.autocast,
        images=bool(images),
        channels_last=any(
            part.weight.is_contiguous(memory_format=torch.channels_last)
            and not part.weight.is_contiguous()
            for part in images
        ),
        products=calls.products,
        convolutions=calls.convolutions,
        optimizers=[_optimizer(each) for each in built.optimizers if id(each) in calls.optimizers],
        loaders=[
            LoaderFacts(
                workers=loader.num_workers,
                persistent=loader.persistent_workers,
                epochs=calls.epochs.get(id(loader), 0),
            )
            for loader in built.loaders
        ],
        reads=calls.reads,
        inputs=inputs[:_MOST_INPUTS],
        state=state,
    )


class _WatchedCalls:
    """The calls of one step that hooks saw."""

    def __init__(self, device: torch.device) -> None:
        self._device = device.type
        self.products: dict[str, int] = {}
        self.convolutions: dict[str, int] = {}
        self.autocast = False
        self.read: set[int] = set()
        """Where storages begin."""
        self.modules: set[int] = set()
        self.optimizers: set[int] = set()
        self.reads = 0
        self.epochs: dict[int, int] = {}

    @contextmanager
    def watching(self, *, functions_only: bool) -> Iterator[None]:
        """`functions_only`: compiled code runs under no mode that sees each operation."""
        with ExitStack() as stack:
            stack.enter_context(self._epochs_counted())
            hooks = (
                register_module_forward_pre_hook(lambda module, _: self.modules.add(id(module))),
                register_optimizer_step_pre_hook(lambda own, *_: self.optimizers.add(id(own))),
            )
            for hook in hooks:
                stack.callback(hook.remove)
            stack.enter_context(_Functions(self))
            if not functions_only:
                stack.enter_context(_Operations(self))
            yield

    @contextmanager
    def _epochs_counted(self) -> Iterator[None]:
        original = DataLoader.__iter__

        def counted(loader: DataLoader[Any]) -> Any:
            self.epochs[id(loader)] = self.epochs.get(id(loader), 0) + 1
            return original(loader)

        setattr(DataLoader, "__iter__", counted)  # noqa: B010
        try:
            yield
        finally:
            setattr(DataLoader, "__iter__", original)  # noqa: B010

    def on_function(self, name: str) -> None:
        if name in _READS and not _called_by_torch():
            self.reads += 1

    def on_operation(self, name: str, arguments: tuple[Any, ...], leaves: list[Any]) -> None:
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                self.read.add(_storage(leaf))
        if name in _PRODUCTS:
            _count(self.products, arguments)
            self.autocast |= torch.is_autocast_enabled(self._device)
        if name in _CONVOLUTIONS:
            _count(self.convolutions, arguments)


class _Functions(TorchFunctionMode):
    def __init__(self, calls: _WatchedCalls) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._calls.on_function(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, calls: _WatchedCalls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        name = func.overloadpacket.__name__
        self._calls.on_operation(name, args, tree_leaves((args, keywords)))
        return func(*args, **keywords)


def _precision(kind: Any) -> str:
    return str(kind.fp32_precision)


def _called_by_torch() -> bool:
    """Return whether a read is torch's own, of a number that it keeps in a tensor."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH)


def _count(counts: dict[str, int], arguments: tuple[Any, ...]) -> None:
    tensor = next((each for each in arguments if isinstance(each, torch.Tensor)), None)
    if tensor is not None:
        dtype = _DTYPES.get(tensor.dtype, str(tensor.dtype))
        counts[dtype] = counts.get(dtype, 0) + 1


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a sparse one has none
        return 0


def _is_compiled(model: torch.nn.Module) -> bool:
    if model._compiled_call_impl is not None:
        return True
    return type(model).__name__ == "OptimizedModule" or "forward" in vars(model)


def _optimizer(optimizer: torch.optim.Optimizer) -> OptimizerFacts:
    return OptimizerFacts(
        name=type(optimizer).__name__,
        fused=optimizer.defaults.get("fused"),
        takes_fused="fused" in optimizer.defaults,
    )


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    cpu = torch.cpu
    return bool(cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported())


def _compiler_problem(device: torch.device) -> str:
    if device.type == "cpu":
        found = any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++")))
        return "" if found else "no C++ compiler: install g++"
    return "" if find_spec("triton") else "triton is not installed"
