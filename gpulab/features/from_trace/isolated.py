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
from gpulab.features.from_trace import schemas
from gpulab.features.from_trace.calls import RecordedCall, RecordedInput

_DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long int": "int64",
    "long": "int64",
    "__int64": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
}
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
class _Arguments:
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
    arguments = _Arguments([], [], [], [])
    for position, recorded_input in enumerate(inputs):
        value = _value(name, position, inputs, recorded_input, list_dtype, arguments)
        arguments.values.append(value)
    made = dict(arguments.tensors)
    changed = [
        value
        for place, value in enumerate(arguments.values)
        if place in schemas.changed(name) and value in made
    ]
    words = []
    has_out = len(inputs) == schemas.WITHOUT_OUT.get(name, len(inputs)) + 1
    if has_out and arguments.values[-1] in made:
        changed.append(arguments.values[-1])
        words.append(f"out={arguments.values.pop()}")
    if keyword := schemas.TEXT_KEYWORD.get(name):
        arguments.notes.append(f"The trace does not hold {keyword}=: the default is assumed")
    words = [*_words(name, arguments.values), *words]
    call = f"torch.ops.aten.{name}({', '.join(words)})"
    return IsolatedCall(
        recorded,
        tuple(arguments.tensors),
        call,
        tuple(map(str, changed)),
        tuple(arguments.overlapping),
        tuple(arguments.notes),
    )


def common_dtype(calls: Sequence[RecordedCall]) -> str:
    """The dtype of floating-point tensors that takes most of the time."""
    seconds: dict[str, float] = {"float32": 0.0}
    for call in calls:
        for dtype in {_DTYPES.get(entry.type, "") for entry in call.inputs or ()}:
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
    if name in schemas.WAITING:
        raise NotIsolableError("waits for the device: its time is that of what ran before")
    if name in schemas.VIEWS:
        raise NotIsolableError("computes nothing: its time is that of calling it")
    if name in schemas.FACTORIES:
        raise NotIsolableError(
            "makes a tensor of what is not recorded, and calls other operations to fill it"
        )
    if name in schemas.UNRECORDED_LISTS:
        raise NotIsolableError("its list of indices is not recorded")
    return name


def _value(
    name: str,
    position: int,
    inputs: tuple[RecordedInput, ...],
    recorded: RecordedInput,
    list_dtype: str,
    arguments: _Arguments,
) -> str | None:
    """An argument in Python's words; its tensors are added to the arguments'."""
    match recorded.type:
        case "":
            return None
        case "Scalar" | "ScalarList":
            return _scalar(name, position, recorded.value)
        case "TensorList":
            made = _list(name, position, recorded, list_dtype)
            if made == "[]":
                return made
            arguments.notes.append(
                f"The trace does not hold the dtype of its lists: {list_dtype} is assumed"
            )
        case _:
            made = _tensor(name, position, inputs, recorded)
    if len(arguments.tensors) == len(_NAMES):
        raise NotIsolableError("takes more than 26 tensors")
    variable = _NAMES[len(arguments.tensors)]
    arguments.tensors.append((variable, made))
    if _overlaps(recorded.dims, recorded.strides):
        arguments.overlapping.append(variable)
    return variable


def _scalar(name: str, position: int, text: str) -> str:
    if text.removeprefix("-") in ("inf", "nan"):
        return f'float("{text}")'
    value = None
    if len(text) <= TEXT_LENGTH and _VALUE.fullmatch(text):
        with suppress(SyntaxError):  # 007
            value = ast.literal_eval(text)
    shown = repr(value)
    if value is None or "inf" in shown:  # 1e999
        raise NotIsolableError(f"the trace does not hold its argument {position + 1}")
    return _numbered_dtype(value) if schemas.DTYPE_ARGUMENT.get(name) == position else shown


def _numbered_dtype(value: Any) -> str:
    dtype = _NUMBERED_DTYPES.get(value) if isinstance(value, int) else None
    if dtype is None:
        raise NotIsolableError(f"torch's dtype number {value} is not known here")
    return f"torch.{dtype}"


def _tensor(
    name: str, position: int, inputs: tuple[RecordedInput, ...], recorded: RecordedInput
) -> str:
    dtype = _DTYPES.get(recorded.type)
    if dtype is None:
        raise NotIsolableError(f"takes a tensor of {recorded.type}, which is not made here")
    dims = _sizes(recorded.dims)
    strides = _sizes(recorded.strides)
    if not dims and (position or dtype in ("float64", "int64")) and not schemas.CHANGED.get(name):
        # A number of Python is recorded so, and lives on the host; torch takes it there beside
        # tensors of a device.
        place = "" if dtype in ("float64", "int64") else ", device=lab.device"
        return f"torch.ones((), dtype=torch.{dtype}{place})"
    words = [f"torch.{dtype}", repr(dims)]
    if strides != _contiguous(dims) and 0 not in dims:
        words.append(repr(strides))
    if dtype in _WHOLE:
        below = 2 if dtype == "bool" else schemas.range_of_indices(name, position, inputs)
        if below is None:
            raise NotIsolableError(
                f"which {dtype} values its argument {position + 1} may hold is not in the trace"
            )
        words.append(f"below={below}")
    elif position and schemas.keeps_multiplying(name):
        words.append("ones=True")
    elif schemas.only_positive(name):
        words.append("positive=True")
    return f"_tensor(lab, {', '.join(words)})"


def _overlaps(dims: Any, strides: Any) -> bool:
    """Whether a tensor, or one of a list, has elements in the same place."""
    if not isinstance(dims, list) or not isinstance(strides, list):
        return False
    for size, stride in zip(dims, strides, strict=False):
        if isinstance(size, list):
            if _overlaps(size, stride):
                return True
        elif size > 1 and stride == 0:
            return True
    return False


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
    if position and schemas.keeps_multiplying(name):
        option = ", ones=True"
    elif schemas.only_positive(name):
        option = ", positive=True"
    if all(strides == _contiguous(dims) for dims, strides in shapes):
        made = "shape"
        variables = "shape"
        rows = [repr(dims) for dims, _ in shapes]
    else:
        made = "shape, strides"
        variables = "shape, strides"
        rows = [repr(pair) for pair in shapes]
    return f"[_tensor(lab, torch.{dtype}, {made}{option}) for {variables} in [{', '.join(rows)}]]"


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


def _words(name: str, values: Sequence[str | None]) -> Iterator[str]:
    """Positional arguments, then those that are given by name; those at the end that were not
    recorded are left out.
    """
    keywords = schemas.KEYWORDS.get(name, ())
    if name in ("div", "div_") and len(values) == 3:
        raise NotIsolableError("the trace does not hold its rounding_mode")
    first = _first_keyword(name, values, keywords)
    positional = list(values[:first])
    while positional and positional[-1] is None:
        positional.pop()
    yield from ("None" if value is None else value for value in positional)
    for keyword, value in zip(keywords, values[first:], strict=False):
        if (
            value is None
            or keyword in schemas.LEFT_OUT
            or (keyword in ("alpha", "beta", "value") and _is_one(value))
        ):
            continue
        number = value.isdecimal() and keyword == "dtype"
        yield f"{keyword}={_numbered_dtype(int(value)) if number else value}"


def _is_one(value: str) -> bool:
    return value in ("1", "1.0")


# The overloads with these keywords have more positional arguments than the others of the name.
_FEWEST = {
    "add": 3,
    "add_": 3,
    "sub": 3,
    "sub_": 3,
    "rsub": 3,
    "sum": 2,
    "mean": 2,
    "prod": 2,
    "std": 4,
    "var": 4,
}


def _first_keyword(name: str, values: Sequence[str | None], keywords: tuple[str, ...]) -> int:
    """The position from which arguments are given by name."""
    # with a number or a list of them: no alpha
    if name.startswith("_foreach_") and len(values) < 3:
        return len(values)
    if len(values) < _FEWEST.get(name, 0):
        return len(values)
    return max(0, len(values) - len(keywords))
