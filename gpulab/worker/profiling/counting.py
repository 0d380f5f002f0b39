"""One untimed step, looked into: what it asks of torch, against what its Work declares."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from gpulab.protocol.events import Counted
from gpulab.worker.building.build import Build

_ALLOCATES = ("aten::empty", "aten::new_empty")
_NO_FORMULA = re.compile(r"aten::(\w*attention\w*|_transformer\w*|\w*(rnn|lstm|gru)\w*|_int_mm|(add)?mv|v?dot)\b")
"""Operations that multiply and add, of which torch may have no formula: attention on a CPU, whole recurrent layers."""


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what the host starts, every operation that is no mere view, and their FLOPs by torch's own formulas."""

    operations = flops = 0
    incomplete = False
    """Whether something multiplied and added that is not in `flops`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else every call goes through a compiler that takes two seconds to import

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        if formula is None:
            with self:  # under inference_mode operations arrive whole: what they are composed of counts
                returned = func.decompose(*args, **(kwargs or {}))
            if returned is not NotImplemented:
                return returned
        returned = func(*args, **(kwargs or {}))
        self.operations += not func.is_view and not func.name().startswith(_ALLOCATES)
        if formula is None:
            self.incomplete |= _NO_FORMULA.match(func.name()) is not None
        else:
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
    flops = None if counter.incomplete else int(counter.flops)
    return Counted(variant=variant, operations=counter.operations, flops=flops)
