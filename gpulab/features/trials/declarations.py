"""The fixes that can be tried from outside, a row each. What one changes is the function of its
name in `transformations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpulab.features.trials.facts import StepFacts
from gpulab.features.trials.fix_result import FixReport


class Fix(NamedTuple):
    """`applies` says why it does not, or nothing where it does."""

    name: str
    sentence: str
    applies: Callable[[StepFacts], str]


def _on_gpu(facts: StepFacts) -> str:
    return "" if facts.device == "cuda" else "on a GPU only"


def _fp32_work(facts: StepFacts) -> str:
    if facts.products.get("fp32", 0) + facts.convolutions.get("fp32", 0):
        return ""
    return "no products or convolutions in fp32"


def _tf32(facts: StepFacts) -> str:
    if reason := _on_gpu(facts) or _fp32_work(facts):
        return reason
    if (facts.capability or (0, 0)) < (8, 0):
        return "this GPU has none"
    return "allowed already" if facts.tf32 else ""


def _autocast(facts: StepFacts) -> str:
    if reason := _fp32_work(facts):
        return reason
    if facts.autocast:
        return "the step uses autocast already"
    if facts.not_called and not facts.models:
        return _called(facts)
    return "" if facts.bf16 else "this device has no instructions for bf16"


def _called(facts: StepFacts) -> str:
    if facts.models:
        return ""
    return "no step calls the model's forward" if facts.not_called else "no model was found"


def _compile(facts: StepFacts) -> str:
    if facts.compiled:
        return "compiled already"
    return facts.compiler or _called(facts)


def _fused(facts: StepFacts) -> str:
    if not facts.optimizers:
        return "no step calls an optimizer of the program"
    if not any(each.takes_fused for each in facts.optimizers):
        return f"{facts.optimizers[0].name} has none"
    return "fused already" if all(each.fused for each in facts.optimizers) else ""


def _channels_last(facts: StepFacts) -> str:
    if not facts.images or not facts.convolutions:
        return "no 2d convolutions"
    return "channels last already" if facts.channels_last else ""


def _workers(facts: StepFacts) -> str:
    if not facts.loaders:
        return "no DataLoader was found in the program"
    if not any(each.epochs for each in facts.loaders):
        return (
            "a step takes batches of an iterator that goes on: what is loaded between steps would "
            "look free; make a step of one epoch"
        )
    if all(each.workers and each.persistent for each in facts.loaders):
        return "workers that persist already"
    return "" if facts.cores > 1 else "this process may use one core"


def _benchmark(facts: StepFacts) -> str:
    if reason := _on_gpu(facts):
        return reason
    if not facts.convolutions:
        return "no convolutions"
    return "on already" if facts.benchmark else ""


def _graph(facts: StepFacts) -> str:
    if reason := _on_gpu(facts):
        return reason
    if facts.loaders:
        return "a graph replays what the device does, and a DataLoader is the host's"
    if facts.reads:
        return f"a step reads values on the host ({facts.reads} times), which no graph can"
    return ""


FIXES: Sequence[Fix] = (
    Fix("tf32", "torch.set_float32_matmul_precision('high')", _tf32),
    Fix("autocast_bf16", "torch.autocast with bf16", _autocast),
    Fix("compile_model", "torch.compile(model)", _compile),
    Fix("fused_optimizer", "optimizer with fused=True", _fused),
    Fix("channels_last", "model.to(memory_format=torch.channels_last)", _channels_last),
    Fix("loader_workers", "DataLoader(num_workers=..., persistent_workers=True)", _workers),
    Fix("cudnn_benchmark", "torch.backends.cudnn.benchmark = True", _benchmark),
    # last: it captures what the others have changed
    Fix("cuda_graph", "the whole step as one CUDA graph", _graph),
)


def gaining(tried: Sequence[FixReport]) -> list[Fix]:
    """Return those that gained, in the order in which they are applied."""
    gained = {fix.name for fix in tried if fix.gained}
    return [fix for fix in FIXES if fix.name in gained]
