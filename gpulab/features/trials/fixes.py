"""The fixes that can be tried from outside, in the order in which they are applied. What one
changes is the function of its name in `transformations.py`; when it applies, that of `worker.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpulab.core.jobs import TriedFix
from gpulab.features.trials.result import FixReport

FIXES = tuple(
    TriedFix(name=name, sentence=sentence)
    for name, sentence in (
        ("tf32", "torch.set_float32_matmul_precision('high')"),
        ("autocast_bf16", "torch.autocast with bf16"),
        ("compile_model", "torch.compile(model)"),
        ("fused_optimizer", "optimizer with fused=True"),
        ("channels_last", "model.to(memory_format=torch.channels_last)"),
        ("loader_workers", "DataLoader(num_workers=..., persistent_workers=True)"),
        ("cudnn_benchmark", "torch.backends.cudnn.benchmark = True"),
        # last: it captures what the others have changed
        ("cuda_graph", "the whole step as one CUDA graph"),
    )
)
"""Each with what it is in the words of torch."""


class StepSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A step that was seen in a process of its own. `why_not`: by the name of a fix why it does not
    apply; empty where it does. Expressions for tensors beside models and optimizers: `inputs` are
    read and left as they are, `state` is changed.
    """

    why_not: dict[str, str] = {}
    inputs: list[str] = []
    state: list[str] = []


def gaining(tried: Sequence[FixReport]) -> list[TriedFix]:
    """Return those that gained, in the order in which they are applied."""
    gained = {fix.name for fix in tried if fix.gained}
    return [fix for fix in FIXES if fix.name in gained]
