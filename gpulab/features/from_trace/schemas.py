"""What torch's schemas say of the arguments of an operation of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.features.from_trace.calls import RecordedInput

LIST_OF_OPTIONAL = "List[Optional[Tensor]]"
"""Which is not recorded."""
_NUMBERS = ("number", "int", "float", "ScalarType", "Layout", "MemoryFormat")
_FLAGS = ("True", "False")
_OPTIONAL = "Optional["


@dataclass(frozen=True)
class Argument:
    """`by_name`: it is given by its name only. `changed`: the operation writes to it."""

    name: str
    type: str
    optional: bool
    by_name: bool
    changed: bool
    has_default: bool


def arguments(name: str, inputs: Sequence[RecordedInput]) -> list[Argument]:
    """Those of the overload that was recorded, and nothing of them where this torch has none.
    ImportError.
    """
    import torch

    fitting = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        taken = [_argument(argument) for argument in schema.arguments]
        if len(taken) >= len(inputs) and all(map(_fits, taken, inputs)):
            fitting.append(taken)
    unknown = [Argument("", "", True, False, False, False)] * len(inputs)
    return min(fitting, key=len, default=unknown)


def _argument(argument: Any) -> Argument:
    kind = str(argument.real_type)
    optional = kind.startswith(_OPTIONAL)
    if optional:
        kind = kind[len(_OPTIONAL) : -1]
    return Argument(
        argument.name,
        kind,
        optional,
        by_name=argument.kwarg_only,
        changed=argument.alias_info is not None and argument.alias_info.is_write,
        has_default=argument.has_default_value(),
    )


def _fits(argument: Argument, recorded: RecordedInput) -> bool:
    """Return whether it may have been recorded so: what is no tensor and no number is not."""
    match recorded.type:
        case "":
            return argument.optional or argument.type != "bool"
        case "Scalar" if recorded.value in _FLAGS:
            return argument.type in ("bool", "number")
        case "Scalar":
            return argument.type in _NUMBERS or (argument.type == "bool" and not recorded.value)
        case "ScalarList":
            return argument.type.startswith("List[") and "Tensor" not in argument.type
        case "TensorList":
            return argument.type == "List[Tensor]"
        case _:
            return argument.type == "Tensor"
