"""One untimed step, looked into: what it asks of torch, against what its Work declares."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from gpulab.core.events import Counted
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build

_ALLOCATES = ("aten::empty", "aten::new_empty")
_ONLY_WRITES = re.compile(r"aten::(_foreach_)?(copy|fill|zero)_\b")
"""Operations in place that do not read what was there."""
_NO_FORMULA = re.compile(
    r"aten::(\w*attention\w*|_transformer\w*|\w*(rnn|lstm|gru)\w*|_int_mm|(add)?mv|v?dot)\b"
)
"""Operations that multiply and add, of which torch may have no formula."""
_FEWER_FLOPS = re.compile(r"aten::\w*conv\w*\b")
"""Libraries compute these by Winograd's or Fourier's transforms, with fewer FLOPs."""


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations that are no views, their operands, and FLOPs by torch's formulas."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = self.flops = 0
        self.incomplete = self.fewer_flops = False
        """Whether some FLOPs are not in `flops`, and whether fewer may have been done."""
        self.operand_bytes = 0
        self._extents: dict[int, tuple[int, set[tuple[int, int]]]] = {}
        """By the storage's address its size, and the parts of it that operands are."""

    @property
    def distinct_bytes(self) -> int:
        """At most what lies below all operands: parts of one storage may overlap."""
        return sum(
            min(size, sum(length for _, length in parts)) for size, parts in self._extents.values()
        )

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else every call goes through a compiler that takes two seconds to import

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        formula = _formula(func)
        if formula is None:
            # under inference_mode operations arrive whole: what they are composed of counts
            with self:
                returned = func.decompose(*args, **(kwargs or {}))
            if returned is not NotImplemented:
                return returned
        returned = func(*args, **(kwargs or {}))
        if func.is_view or func.name().startswith(_ALLOCATES):
            return returned
        self.operations += 1
        self._look_at(_tensors((args, kwargs, returned)))
        self.operand_bytes += sum(
            tensor.numel() * tensor.element_size() for tensor in _written_in_place(func, args)
        )
        self.fewer_flops |= _FEWER_FLOPS.match(func.name()) is not None
        if formula is None:
            self.incomplete |= _NO_FORMULA.match(func.name()) is not None
        else:
            self.flops += formula(*args, **(kwargs or {}), out_val=returned)
        return returned

    def _look_at(self, operands: list[torch.Tensor]) -> None:
        """The bytes of one operation."""
        for operand in operands:
            self.operand_bytes += operand.numel() * operand.element_size()
            storage = operand.untyped_storage()
            known = self._extents.setdefault(storage.data_ptr(), (storage.nbytes(), set()))
            known[1].add((operand.data_ptr(), _span(operand)))


def _formula(func: Any) -> Callable[..., int] | None:
    """Torch's own, of an operation in place that of the one it is named after."""
    formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
    if formula is not None:
        return formula
    name = func._overloadpacket.__name__
    plain = getattr(torch.ops.aten, name.removesuffix("_"), None) if name.endswith("_") else None
    return flop_registry.get(plain)


def _written_in_place(func: Any, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """Arguments that an operation reads and writes again: each is an operand twice."""
    if _ONLY_WRITES.match(func.name()):
        return []
    named = zip(func._schema.arguments, args, strict=False)
    return _tensors(
        [value for argument, value in named if argument.alias_info and argument.alias_info.is_write]
    )


def _tensors(values: Any) -> list[torch.Tensor]:
    """Every tensor with memory of its own once, by address and shape."""
    once = {}
    for tensor in tensors.strided(values):
        once[tensor.data_ptr(), tensor.shape, tensor.stride()] = tensor
    return list(once.values())


def _span(operand: torch.Tensor) -> int:
    """Bytes that its elements are, not those between them."""
    elements = 1
    for stride, size in zip(operand.stride(), operand.shape, strict=True):
        elements *= size if stride else 1
    return elements * operand.element_size()


class _ThreadActivity:
    """The activity of other Python threads, or new ones: the counter does not see them."""

    def __enter__(self) -> None:
        self.worked = False
        self._before = _cpu_ns()
        threading.setprofile(self._started)

    def __exit__(self, *error: object) -> None:
        threading.setprofile(None)
        self.worked |= any(now > self._before.get(thread, 0) for thread, now in _cpu_ns().items())

    def _started(self, *event: object) -> None:
        sys.setprofile(None)
        self.worked = True


def _cpu_ns() -> dict[int, int]:
    """Time on the CPU by thread, without this one's; nothing where the system does not say."""
    numbers = [
        thread.native_id or 0
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
    ]
    with suppress(OSError, ValueError, IndexError):
        return {
            number: int(Path(f"/proc/self/task/{number}/schedstat").read_text().split()[0])
            for number in numbers
        }
    return {}


def count(variant: str, build: Build) -> Counted | None:
    """Count one step; None where it does not work under a dispatch mode: that is no fault."""
    build.restore()
    threads = _ThreadActivity()
    try:
        with build.context(), threads, _Counter() as counter:
            build.work.step()
    except Exception:
        return None
    seen = counter.operations > 0
    return Counted(
        variant=variant,
        operations=counter.operations,
        flops=None if counter.incomplete or threads.worked else int(counter.flops),
        operand_bytes=counter.operand_bytes if seen else None,
        distinct_bytes=counter.distinct_bytes if seen else None,
        fewer_flops=counter.fewer_flops,
    )
