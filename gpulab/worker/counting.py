"""One untimed step, looked into: what it asks of torch, against what its Work declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from gpulab.model.events import Counted
from gpulab.worker.build import Build

_ALLOCATES = ("aten::empty", "aten::new_empty")


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what the host starts, every operation that is no mere view, and their FLOPs by torch's own formulas."""

    operations = flops = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else every call goes through a compiler that takes two seconds to import

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        if formula is None:
            with self:  # under inference_mode operations arrive whole: what they are made of counts
                returned = func.decompose(*args, **(kwargs or {}))
            if returned is not NotImplemented:
                return returned
        returned = func(*args, **(kwargs or {}))
        self.operations += not func.is_view and not func.name().startswith(_ALLOCATES)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=returned)
        return returned


def count(variant: str, build: Build) -> Counted | None:
    """Count one step; None where it works, and does not under a dispatch mode: that is no fault of it."""
    build.restore()
    try:
        with build.context(), _Counter() as counter:  # type: ignore[no-untyped-call]
            build.work.step()
    except Exception:
        return None
    return Counted(variant=variant, operations=counter.operations, flops=int(counter.flops))
