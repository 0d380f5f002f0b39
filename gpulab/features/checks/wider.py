"""The baseline's step in float64, against which two outputs of low precision are judged.

The difference of two right outputs holds the errors of both: compiled bf16 is further from an eager
baseline than is allowed, and nearer to the truth than that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from gpulab.engine.build import tensors
from gpulab.engine.build.agreement import error_of
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.measure.outputs import read, step
from gpulab.features.checks.stepping import Stepping, Tensors
from gpulab.features.checks.values import exchange
from gpulab.scenario import Variant

_SEEDS = 5
_NEAR = 1.25
"""Times the baseline's error that a variant's may be."""
_FAR = 4.0
"""Times it, beyond which no other seed is asked."""
_FARTHEST = 10.0
_FARTHEST_OF_ALL = 0.25
"""What the baseline may be off by itself, in tolerances and at most."""
_OTHER_SEED = 800_011
_WIDE = {torch.float64, torch.complex128}
_OWN_OPERATIONS = ("aten", "prims", "prim", "profiler")
_LEAVES_TORCH = {
    torch.Tensor.data_ptr,
    torch.Tensor.numpy,
    torch.Tensor.__array__,
    torch.Tensor.__dlpack__,
    torch.Tensor.untyped_storage,
}
"""What other libraries take a tensor's values by: their own kernels compute as they did."""


class _NotWiderError(RuntimeError):
    """Something is computed outside of torch's own operations."""


def wider_output(builder: Builder, build: Build) -> Tensors | None:
    """The output of a step that computes in float64; None where not all of it does."""
    values = _WiderValues()
    try:
        with _eager(), _Operations(values), _Functions(values):
            returned = step(builder, build)
        output = [values.known(tensor) for tensor in read(build, returned, torch.float64)]
        if any(_is_narrow(tensor) for tensor in output):
            return None
        return [tensor.detach().clone() for tensor in output]
    except Exception:  # what a step raises on tensors of another dtype
        return None
    finally:
        build.restore()


def may_be_right(error: float, tolerance: float) -> bool:
    """Return whether two outputs that differ so much may both be as near as is allowed."""
    return tolerance > 0 and error <= (1 + _NEAR) * _most(tolerance)


def _most(tolerance: float) -> float:
    return min(_FARTHEST * tolerance, _FARTHEST_OF_ALL)


@dataclass(frozen=True)
class Errors:
    """The errors of a variant and the baseline against float64: the median of the seeds."""

    own: float
    baseline: float

    @property
    def is_as_near(self) -> bool:
        return self.own <= _NEAR * self.baseline

    @property
    def apart(self) -> float:
        """Return what the two outputs may differ by."""
        return _NEAR * (self.own + self.baseline)


def errors_in(
    stepping: Stepping, baseline: Variant, variant: Variant, build: Build, *, tolerance: float
) -> Errors | None:
    """None where the baseline does not run in float64, or is far from what it gives there, as
    where a step draws random numbers.
    """
    builder = stepping.builder
    base = builder.build(baseline)
    errors: list[Errors] = []
    try:
        builder.first_step(base)
        for seed in range(_SEEDS):
            with _values_of(stepping, baseline, base, seed):
                narrow = tensors.kept(stepping.step(base))
                wide = wider_output(builder, base)
            if wide is None:
                return None
            with _values_of(stepping, variant, build, seed):
                output = tensors.kept(stepping.step(build))
            found = Errors(error_of(output, wide), error_of(narrow, wide))
            if not 0 < found.baseline <= _most(tolerance):
                return None
            errors.append(found)
            if found.own > _FAR * found.baseline:
                break
    finally:
        base.close()
    own = median(entry.own for entry in errors)
    return Errors(own, median(entry.baseline for entry in errors))


@contextmanager
def _values_of(stepping: Stepping, variant: Variant, build: Build, seed: int) -> Iterator[None]:
    """With the inputs that a build with another seed has, but for the first of the seeds."""
    inputs = tensors.live_leaves("inputs", build.work.inputs)
    if not seed or not inputs:
        yield
        return
    write, undo = exchange(inputs, stepping.values_of(variant, _OTHER_SEED + seed))
    try:
        write()
        yield
    finally:
        undo()


def _is_narrow(value: Any) -> bool:
    """Return whether it is a tensor of floats, or their dtype, that float64 is wider than."""
    dtype = value.dtype if isinstance(value, torch.Tensor) else value
    if not isinstance(dtype, torch.dtype):
        return False
    return (dtype.is_floating_point or dtype.is_complex) and dtype not in _WIDE


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype.is_complex else torch.float64


class _WiderValues:
    """Tensors from before the step in float64: by their memory, which several may share."""

    def __init__(self) -> None:
        self._memory: dict[tuple[int, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}
        """With the tensor, which keeps its memory from being given out again."""

    def of_all(self, tree: Any) -> Any:
        """Its tensors in float64, and its dtypes as float64."""
        return tree_map(self._widened, tree)

    def known(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what stands for the tensor, if a step has used it."""
        key = tensor.untyped_storage().data_ptr(), tensor.dtype
        return self._view(tensor) if key in self._memory else tensor

    def _widened(self, value: Any) -> Any:
        if not _is_narrow(value):
            return value
        return self._view(value) if isinstance(value, torch.Tensor) else _wide(value)

    def _view(self, tensor: torch.Tensor) -> torch.Tensor:
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            storage = tensor.untyped_storage()
            key = storage.data_ptr(), tensor.dtype
            if key not in self._memory:
                whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
                self._memory[key] = tensor, whole.to(_wide(tensor.dtype))
            wide = self._memory[key][1]
            view = wide.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        return view.requires_grad_() if tensor.requires_grad else view


class _Functions(TorchFunctionMode):
    """At the functions of torch, of which some compare dtypes before any operation is called."""

    def __init__(self, values: _WiderValues) -> None:
        super().__init__()
        self._values = values

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in _LEAVES_TORCH:
            raise _NotWiderError
        with _paused():
            args, kwargs = self._values.of_all((args, kwargs or {}))
        return function(*args, **kwargs)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """At the operations that these call."""

    def __init__(self, values: _WiderValues) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._values = values

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operation.namespace not in _OWN_OPERATIONS:
            raise _NotWiderError
        args, kwargs = self._values.of_all((args, kwargs or {}))
        return self._values.of_all(operation(*args, **kwargs))


@contextmanager
def _paused() -> Iterator[None]:
    """Without the mode for operations."""
    with torch.utils._python_dispatch._disable_current_modes():
        yield


def _eager() -> Any:
    """Without compiled code, where there may be any."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")
