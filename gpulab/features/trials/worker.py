"""One step of a program under hooks, and which fixes apply to it. What a step does not call is not
seen: a fix of it would have no effect.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

from gpulab.core.jobs import StepRequest
from gpulab.engine.plain_functions import seed_everything
from gpulab.engine.processes.device import open_device
from gpulab.features.trials.fixes import StepSeen
from gpulab.features.trials.hooks import Operations
from gpulab.function_step import BuiltStep, FunctionStep
from gpulab.scenario import Lab

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mkldnn_linear")
_CONVOLUTIONS = ("convolution", "mkldnn_convolution", "cudnn_convolution", "_convolution")
_READS = ("item", "__bool__", "__float__", "__int__", "tolist", "__index__")
_MOST_INPUTS = 50
_TORCH = str(Path(torch.__file__).parent)


def look(request: bytes) -> StepSeen:
    """In a process of its own: what a `StepRequest` asks."""
    return seen_of(msgspec.json.decode(request, type=StepRequest))


def seen_of(request: StepRequest) -> StepSeen:
    """Take one step as it is, and one under hooks."""
    device, _ = open_device(request.device, request.threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    step = FunctionStep(request.file, request.function, arguments=request.arguments)
    seed_everything(0)
    built = step.build(cast(Lab, SimpleNamespace(device=device)))
    built.call()  # an optimizer makes its state, a library sets itself up
    before = {expression: tensor._version for expression, tensor in built.tensors.items()}
    calls = Calls(built, device.type)
    with calls.watched():
        built.call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
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
    return StepSeen(why_not=why_not(calls), inputs=inputs[:_MOST_INPUTS], state=state)


class Calls:
    """What hooks saw of one step."""

    def __init__(self, built: BuiltStep, device: str) -> None:
        self.device = device
        self.all_models = built.called_modules
        self.models: list[torch.nn.Module] = []
        """Whose forward is called."""
        self.optimizers: list[torch.optim.Optimizer] = []
        self.loaders = built.loaders
        self.epochs: set[int] = set()
        """The ids of loaders that the step begins anew."""
        self.compiled = any(map(_is_compiled, (*built.modules, *self.all_models)))
        self.autocast = self.convolutions = self.fp32 = False
        """`fp32`: products or convolutions in it."""
        self.reads = 0
        """Of one value: .item(), float(), bool()."""
        self.read: set[int] = set()
        """Where storages begin."""
        self._own = {id(each) for each in (*self.all_models, *built.optimizers)}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While it is entered, calls are seen."""
        begin = DataLoader.__iter__

        def counted(loader: DataLoader[Any]) -> Any:
            self.epochs.add(id(loader))
            return begin(loader)

        with ExitStack() as stack:
            setattr(DataLoader, "__iter__", counted)  # noqa: B010
            stack.callback(setattr, DataLoader, "__iter__", begin)
            hooks = (
                register_module_forward_pre_hook(lambda own, _: self._add(own, self.models)),
                register_optimizer_step_pre_hook(lambda own, *_: self._add(own, self.optimizers)),
            )
            for hook in hooks:
                stack.callback(hook.remove)
            stack.enter_context(_Functions(self))
            if not self.compiled:  # whose code runs under no mode that sees each operation
                stack.enter_context(Operations(self.on_operation))
            yield

    def _add(self, called: Any, those: list[Any]) -> None:
        if id(called) in self._own and all(called is not each for each in those):
            those.append(called)

    def on_function(self, name: str) -> None:
        if name in _READS and not _called_by_torch():
            self.reads += 1

    def on_operation(self, func: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        name = func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, keywords)) if isinstance(leaf, torch.Tensor)]
        self.read.update(map(_storage, tensors))
        if name in _PRODUCTS:
            self.autocast |= torch.is_autocast_enabled(self.device)
        if name in _CONVOLUTIONS:
            self.convolutions = True
        if name in (*_PRODUCTS, *_CONVOLUTIONS) and tensors:
            self.fp32 |= tensors[0].dtype == torch.float32
        return func(*args, **keywords)


class _Functions(TorchFunctionMode):
    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._calls.on_function(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def _called_by_torch() -> bool:
    """Return whether a read is torch's own, of a number that it keeps in a tensor."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a sparse one has none
        return 0


def _is_compiled(model: torch.nn.Module) -> bool:
    if model._compiled_call_impl is not None:
        return True
    return type(model).__name__ == "OptimizedModule" or "forward" in vars(model)


# --- why a fix does not apply; nothing where it does ----------------------------------------------


def why_not(calls: Calls) -> dict[str, str]:
    """Return the reason of each fix by its name."""
    return {name: reason(calls) for name, reason in _REASONS.items()}


def _on_gpu(calls: Calls) -> str:
    return "" if calls.device == "cuda" else "on a GPU only"


def _fp32(calls: Calls) -> str:
    return "" if calls.fp32 else "no products or convolutions in fp32"


def _called(calls: Calls) -> str:
    if calls.models:
        return ""
    return "no step calls the model's forward" if calls.all_models else "no model was found"


def _tf32(calls: Calls) -> str:
    if reason := _on_gpu(calls) or _fp32(calls):
        return reason
    if torch.cuda.get_device_capability() < (8, 0):
        return "this GPU has none"
    backends: Any = torch.backends
    precisions = (backends.fp32_precision, backends.cuda.matmul.fp32_precision)
    return "allowed already" if "tf32" in precisions else ""


def _autocast(calls: Calls) -> str:
    if reason := _fp32(calls):
        return reason
    if calls.autocast:
        return "the step uses autocast already"
    if calls.all_models and not calls.models:
        return _called(calls)
    if calls.device == "cuda":
        has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has_bf16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "" if has_bf16 else "this device has no instructions for bf16"


def _compile(calls: Calls) -> str:
    if calls.compiled:
        return "compiled already"
    if calls.device == "cuda" and not find_spec("triton"):
        return "triton is not installed"
    compilers = (os.environ.get("CXX", "g++"), "clang++")
    if calls.device == "cpu" and not any(map(shutil.which, compilers)):
        return "no C++ compiler: install g++"
    return _called(calls)


def _fused(calls: Calls) -> str:
    if not calls.optimizers:
        return "no step calls an optimizer of the program"
    if not any("fused" in each.defaults for each in calls.optimizers):
        return f"{type(calls.optimizers[0]).__name__} has none"
    fused = all(each.defaults.get("fused") for each in calls.optimizers)
    return "fused already" if fused else ""


def _channels_last(calls: Calls) -> str:
    parts = [part for model in calls.models for part in model.modules()]
    weights = [part.weight for part in parts if isinstance(part, torch.nn.Conv2d)]
    if not weights or not calls.convolutions:
        return "no 2d convolutions"
    for weight in weights:
        if weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous():
            return "channels last already"
    return ""


def _workers(calls: Calls) -> str:
    if not calls.loaders:
        return "no DataLoader was found in the program"
    if not any(id(each) in calls.epochs for each in calls.loaders):
        return (
            "a step takes batches of an iterator that goes on: what is loaded between steps would "
            "look free; make a step of one epoch"
        )
    if all(each.num_workers and each.persistent_workers for each in calls.loaders):
        return "workers that persist already"
    return "" if len(os.sched_getaffinity(0)) > 1 else "this process may use one core"


def _benchmark(calls: Calls) -> str:
    if reason := _on_gpu(calls):
        return reason
    if not calls.convolutions:
        return "no convolutions"
    return "on already" if torch.backends.cudnn.benchmark else ""


def _graph(calls: Calls) -> str:
    if reason := _on_gpu(calls):
        return reason
    if calls.loaders:
        return "a graph replays what the device does, and a DataLoader is the host's"
    if calls.reads:
        return f"a step reads values on the host ({calls.reads} times), which no graph can"
    return ""


_REASONS: Mapping[str, Callable[[Calls], str]] = {
    "tf32": _tf32,
    "autocast_bf16": _autocast,
    "compile_model": _compile,
    "fused_optimizer": _fused,
    "channels_last": _channels_last,
    "loader_workers": _workers,
    "cudnn_benchmark": _benchmark,
    "cuda_graph": _graph,
}
