"""The fixes that can be tried from outside, in the order in which they are applied. What one
changes is the function of its name in `transformations.py`; when it applies, that of `worker.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpulab.features.trials.result import FixReport


class Fix(NamedTuple):
    """Its name, and what it is in the words of torch."""

    name: str
    sentence: str


FIXES: Sequence[Fix] = (
    Fix("tf32", "torch.set_float32_matmul_precision('high')"),
    Fix("autocast_bf16", "torch.autocast with bf16"),
    Fix("compile_model", "torch.compile(model)"),
    Fix("fused_optimizer", "optimizer with fused=True"),
    Fix("channels_last", "model.to(memory_format=torch.channels_last)"),
    Fix("loader_workers", "DataLoader(num_workers=..., persistent_workers=True)"),
    Fix("cudnn_benchmark", "torch.backends.cudnn.benchmark = True"),
    # last: it captures what the others have changed
    Fix("cuda_graph", "the whole step as one CUDA graph"),
)


class StepSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A step that was seen in a process of its own. `why_not`: by the name of a fix why it does not
    apply; empty where it does. Expressions for tensors beside models and optimizers: `inputs` are
    read and left as they are, `state` is changed.
    """

    why_not: dict[str, str] = {}
    inputs: list[str] = []
    state: list[str] = []


def gaining(tried: Sequence[FixReport]) -> list[Fix]:
    """Return those that gained, in the order in which they are applied."""
    gained = {fix.name for fix in tried if fix.gained}
    return [fix for fix in FIXES if fix.name in gained]
