"""A recorded operation as a call of its own: the tensors that it takes, in Python's words; or why
there is none.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from gpulab.core.limits import TEXT_LENGTH
from gpulab.features.from_trace.calls import RecordedCall, RecordedInput
from gpulab.features.from_trace.schemas import LIST_OF_OPTIONAL, Argument, arguments
from gpulab.features.from_trace.values import (
    FACTORIES,
    RUNNING_STATISTICS,
    VIEWS,
    WAITING,
    keeps_multiplying,
    only_positive,
    range_of_indices,
)
from gpulab.traces.trace import DTYPES

_NUMBERED_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
}
"""As torch numbers them (c10::ScalarType)."""
_WHOLE = {"int64", "int32", "int16", "int8", "uint8", "bool"}
_NUMBER = r"True|False|-?\d+(\.\d*)?(e[+-]?\d+)?"
_VALUE = re.compile(rf"{_NUMBER}|\[(({_NUMBER}), ?)*({_NUMBER})?\]")
_NAMES = "abcdefghijklmnopqrstuvwxyz"
_LEFT_OUT = ("layout", "device", "pin_memory", "memory_format", "generator")
"""Arguments whose recorded value is a number of torch's own; without them the operation does the
same.
"""
_OTHERS = (
    (
        r"autograd::|torch::autograd|\w+Backward\d+$",
        "part of autograd, which calls other operations",
    ),
    (r"c10d::|nccl|gloo|record_param_comms", "talks to other processes"),
    (
        r"triton_|.*cpp_fused|## Call|Torch-Compiled|TorchDynamo|CompiledF",
        "code that torch.compile made",
    ),
    (r"Optimizer\.|ProfilerStep|enumerate\(DataLoader", "a mark around other operations"),
    (r"(?!aten::)\w+::", "an operation of another library, whose arguments are not known here"),
    (r"(?!aten::)", "no operation of torch"),
)


class NotIsolableError(ValueError):
    """Why an operation cannot be called by itself."""


@dataclass(frozen=True)
class IsolatedCall:
    """`tensors` are names with what makes them; `changed` those that the call writes to; `notes`
    what was assumed.

    `overlapping` are those whose elements share memory, as of expand(): the lab cannot write other
    values there.
    """

    recorded: RecordedCall
    tensors: tuple[tuple[str, str], ...]
    call: str
    changed: tuple[str, ...]
    overlapping: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass
class _Made:
    tensors: list[tuple[str, str]]
    values: list[str | None]
    """In the order of the schema; None where an argument was not recorded."""
    overlapping: list[str]
    notes: list[str]


def isolated(recorded: RecordedCall, list_dtype: str) -> IsolatedCall:
    """The call, with tensors of lists in `list_dtype`, which are recorded without.
    NotIsolableError.
    """
    name = _operation(recorded)
    inputs = recorded.inputs or ()
    schema = arguments(name, inputs)
    if any(argument.type == LIST_OF_OPTIONAL for argument in schema):
        raise NotIsolableError("its list of indices is not recorded")
    made = _Made([], [], [], [])
    for position, recorded_input in enumerate(inputs):
        value = _value(name, position, inputs, recorded_input, list_dtype, made)
        made.values.append(value)
    changed = [*RUNNING_STATISTICS.get(name, ())]
    for position, argument in enumerate(schema[: len(inputs)]):
        value = made.values[position]
        if argument.type == "ScalarType" and value is not None:
            made.values[position] = _numbered_dtype(value)
        if argument.type == "str" and not argument.has_default:
            raise NotIsolableError(f"the trace does not hold its {argument.name}")
        if argument.type == "str":
            made.notes.append(f"The trace does not hold {argument.name}=: the default is assumed")
        if argument.changed:
            changed.append(position)
    names = {name for name, _ in made.tensors}
    call = f"torch.ops.aten.{name}({', '.join(_words(schema, made.values))})"
    return IsolatedCall(
        recorded,
        tuple(made.tensors),
        call,
        tuple(value for place in changed if (value := made.values[place]) in names),
        tuple(made.overlapping),
        tuple(made.notes),
    )


def common_dtype(calls: Sequence[RecordedCall]) -> str:
    """The dtype of floating-point tensors that takes most of the time."""
    seconds: dict[str, float] = {"float32": 0.0}
    for call in calls:
        for dtype in {DTYPES.get(entry.type, "") for entry in call.inputs or ()}:
            if "float" in dtype:
                seconds[dtype] = seconds.get(dtype, 0.0) + call.self_s
    return max(seconds, key=lambda dtype: seconds[dtype])


def _operation(recorded: RecordedCall) -> str:
    """Its name in ATen."""
    for pattern, reason in _OTHERS:
        if re.match(pattern, recorded.name):
            raise NotIsolableError(reason)
    name = recorded.name.removeprefix("aten::")
    if not name.isidentifier() or iskeyword(name):
        raise NotIsolableError("no operation of torch")
    if recorded.inputs is None:
        raise NotIsolableError("its shapes were not recorded")
    if recorded.copies:
        raise NotIsolableError(
            "copies between host and device: the trace does not say which memory, pinned or not"
        )
    if name in WAITING:
        raise NotIsolableError("waits for the device: its time is that of what ran before")
    if name in VIEWS:
        raise NotIsolableError("computes nothing: its time is that of calling it")
    if name in FACTORIES:
        raise NotIsolableError(
            "makes a tensor of what is not recorded, and calls other operations to fill it"
        )
    return name


def _value(
    name: str,
    position: int,
    inputs: tuple[RecordedInput, ...],
    recorded: RecordedInput,
    list_dtype: str,
    made: _Made,
) -> str | None:
    """An argument in Python's words; its tensors are added to those made."""
    match recorded.type:
        case "":
            return None
        case "Scalar" | "ScalarList":
            return _scalar(position, recorded.value)
        case "TensorList":
            new = _list(name, position, recorded, list_dtype)
            if new == "[]":
                return new
            made.notes.append(
                f"The trace does not hold the dtype of its lists: {list_dtype} is assumed"
            )
        case _:
            new = _tensor(name, position, inputs, recorded)
    if len(made.tensors) == len(_NAMES):
        raise NotIsolableError("takes more than 26 tensors")
    variable = _NAMES[len(made.tensors)]
    made.tensors.append((variable, new))
    if _overlaps(recorded.dims, recorded.strides):
        made.overlapping.append(variable)
    return variable


def _scalar(position: int, text: str) -> str:
    if text.removeprefix("-") in ("inf", "nan"):
        return f'float("{text}")'
    value = None
    if len(text) <= TEXT_LENGTH and _VALUE.fullmatch(text):
        with suppress(SyntaxError):  # 007
            value = ast.literal_eval(text)
    shown = repr(value)
    if value is None or "inf" in shown:  # 1e999
        raise NotIsolableError(f"the trace does not hold its argument {position + 1}")
    return shown


def _numbered_dtype(number: str) -> str:
    dtype = _NUMBERED_DTYPES.get(int(number)) if number.isdecimal() else None
    if dtype is None:
        raise NotIsolableError(f"torch's dtype number {number} is not known here")
    return f"torch.{dtype}"


def _tensor(
    name: str, position: int, inputs: tuple[RecordedInput, ...], recorded: RecordedInput
) -> str:
    dtype = DTYPES.get(recorded.type)
    if dtype is None:
        raise NotIsolableError(f"takes a tensor of {recorded.type}, which is not made here")
    dims = _sizes(recorded.dims)
    strides = _sizes(recorded.strides)
    if not dims and (position or dtype in ("float64", "int64")):
        # A number of Python is recorded so, and lives on the host; torch takes it there beside
        # tensors of a device.
        place = "" if dtype in ("float64", "int64") else ", device=lab.device"
        return f"torch.ones((), dtype=torch.{dtype}{place})"
    words = [f"torch.{dtype}", repr(dims)]
    if strides != _contiguous(dims) and 0 not in dims:
        words.append(repr(strides))
    if dtype in _WHOLE:
        below = 2 if dtype == "bool" else range_of_indices(name, position, inputs)
        if below is None:
            raise NotIsolableError(
                f"which {dtype} values its argument {position + 1} may hold is not in the trace"
            )
        words.append(f"below={below}")
    elif position and keeps_multiplying(name):
        words.append("ones=True")
    elif only_positive(name):
        words.append("positive=True")
    return f"_tensor(lab, {', '.join(words)})"


def _overlaps(dims: Any, strides: Any) -> bool:
    """Return whether a tensor, or one of a list, has elements in the same place."""
    if not isinstance(dims, list) or not isinstance(strides, list):
        return False
    return any(
        _overlaps(size, stride) if isinstance(size, list) else size > 1 and stride == 0
        for size, stride in zip(dims, strides, strict=False)
    )


def _list(name: str, position: int, recorded: RecordedInput, dtype: str) -> str:
    if not isinstance(recorded.dims, list) or not isinstance(recorded.strides, list):
        raise NotIsolableError("the shapes of its list were not recorded")
    shapes = [
        (_sizes(dims), _sizes(strides))
        for dims, strides in zip(recorded.dims, recorded.strides, strict=False)
    ]
    if not shapes:
        return "[]"
    option = ""
    if position and keeps_multiplying(name):
        option = ", ones=True"
    elif only_positive(name):
        option = ", positive=True"
    made = "shape, strides"
    rows = [repr(pair) for pair in shapes]
    if all(strides == _contiguous(dims) for dims, strides in shapes):
        made = "shape"
        rows = [repr(dims) for dims, _ in shapes]
    return f"[_tensor(lab, torch.{dtype}, {made}{option}) for {made} in [{', '.join(rows)}]]"


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(
        isinstance(size, int) and size >= 0 for size in value
    ):
        raise NotIsolableError("its shapes were not recorded")
    return tuple(value)


def _contiguous(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(
        math.prod(max(1, size) for size in dims[index + 1 :]) for index in range(len(dims))
    )


def _words(schema: Sequence[Argument], values: Sequence[str | None]) -> Iterator[str]:
    """Positional arguments, then those that are given by name; those at the end that were not
    recorded are left out.
    """
    count = min(len(values), sum(not argument.by_name for argument in schema))
    while count and _is_left_out(schema[count - 1], values[count - 1]):
        count -= 1
    yield from ("None" if value is None else value for value in values[:count])
    for argument, value in zip(schema, values, strict=False):
        if argument.by_name and not _is_left_out(argument, value):
            yield f"{argument.name}={value}"


def _is_left_out(argument: Argument, value: str | None) -> bool:
    """Return whether without it the operation does the same."""
    if value is None or not argument.has_default:
        return value is None
    one = argument.name in ("alpha", "beta", "value") and value in ("1", "1.0")
    return one or argument.name in _LEFT_OUT
