"""The fixes that can be tried from outside: one declaration each. What it changes is the function
of its name in `transformations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulab.features.fixes.facts import StepFacts
from gpulab.features.fixes.result import FixReport


@dataclass(frozen=True)
class Fix:
    """`applies` says why it does not, or nothing where it does. Of one `group` at most one is in
    all together. `answers` are the codes of the findings that promise what it gains.
    """

    name: str
    sentence: str
    applies: Callable[[StepFacts], str]
    group: str
    answers: Sequence[str] = ()
    lines: Callable[[StepFacts], Sequence[str]] = lambda facts: ()
    """Of the program, that have to be edited to have it for good."""
    edit: str = ""
    """What to write there."""


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
    return "" if facts.bf16 else "this device has no instructions for bf16"


def _compile(facts: StepFacts) -> str:
    if facts.compiled:
        return "compiled already"
    return facts.compiler


def _compile_model(facts: StepFacts) -> str:
    return _compile(facts) if facts.models else "no model was found in the program"


def _compile_step(facts: StepFacts) -> str:
    if facts.models or facts.optimizers or facts.loaders:
        return "the model is compiled instead"
    return _compile(facts)


def _reduce_overhead(facts: StepFacts) -> str:
    return _on_gpu(facts) or _compile_model(facts)


def _optimizers_that_take(facts: StepFacts, name: str) -> str:
    if not facts.optimizers:
        return "no optimizer was found in the program"
    able = [each for each in facts.optimizers if name in each.takes]
    if not able:
        return f"{facts.optimizers[0].name} has none"
    return ""


def _fused(facts: StepFacts) -> str:
    if reason := _optimizers_that_take(facts, "fused"):
        return reason
    return "fused already" if all(each.fused for each in facts.optimizers) else ""


def _foreach(facts: StepFacts) -> str:
    if reason := _optimizers_that_take(facts, "foreach"):
        return reason
    optimizers = facts.optimizers
    if all(each.foreach or each.fused for each in optimizers):
        return "foreach or fused already"
    if all(each.on_device and each.foreach is None for each in optimizers):
        return "what torch does by default on a GPU"
    return ""


def _channels_last(facts: StepFacts) -> str:
    if not facts.images or not facts.convolutions:
        return "no 2d convolutions"
    return "channels last already" if facts.channels_last else ""


def _loader(facts: StepFacts) -> str:
    if not facts.loaders:
        return "no DataLoader was found in the program"
    if not any(each.epochs for each in facts.loaders):
        return (
            "a step takes batches of an iterator that goes on: what is loaded between steps would "
            "look free; make a step of one epoch"
        )
    return ""


def _workers(facts: StepFacts) -> str:
    if reason := _loader(facts):
        return reason
    if all(each.workers and each.persistent for each in facts.loaders):
        return "workers that persist already"
    return "" if facts.cores > 1 else "this process may use one core"


def _pinned(facts: StepFacts) -> str:
    if reason := _on_gpu(facts) or _loader(facts):
        return reason
    return "pinned already" if all(each.pinned for each in facts.loaders) else ""


def _zeroes_grads(facts: StepFacts) -> str:
    return "" if facts.zeroed else "no step calls zero_grad(set_to_none=False)"


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
    if facts.items:
        return f"a step reads values on the host ({facts.items} times), which no graph can"
    return ""


def _attention(facts: StepFacts) -> str:
    if reason := _on_gpu(facts):
        return reason
    if not facts.attentions:
        return "no scaled_dot_product_attention"
    half = facts.attentions.keys() & {"bf16", "fp16"}
    return "" if half else "these kernels take bf16 and fp16"


def _items(facts: StepFacts) -> str:
    if not facts.items:
        return "a step reads no values with .item()"
    if facts.device != "cuda":
        return f"{facts.items} a step, and on a CPU they wait for nothing"
    return ""


FIXES: Sequence[Fix] = (
    Fix(
        "tf32",
        "torch.set_float32_matmul_precision('high')",
        _tf32,
        "precision",
        ("fp32_products",),
    ),
    Fix(
        "autocast_bf16",
        "torch.autocast with bf16",
        _autocast,
        "precision of products",
        ("fp32_products",),
    ),
    Fix("compile_model", "torch.compile(model)", _compile_model, "compile", ("not_fused",)),
    Fix(
        "compile_reduce_overhead",
        "torch.compile(model, mode='reduce-overhead')",
        _reduce_overhead,
        "compile",
        ("many_small_operations", "not_fused"),
    ),
    Fix("compile_step", "torch.compile(step)", _compile_step, "compile", ("not_fused",)),
    Fix(
        "fused_optimizer",
        "optimizer with fused=True",
        _fused,
        "optimizer",
        ("optimizer_not_fused",),
    ),
    Fix(
        "foreach_optimizer",
        "optimizer with foreach=True",
        _foreach,
        "optimizer",
        ("optimizer_not_fused",),
    ),
    Fix("channels_last", "model.to(memory_format=torch.channels_last)", _channels_last, "layout"),
    Fix(
        "loader_workers",
        "DataLoader(num_workers=..., persistent_workers=True)",
        _workers,
        "loader",
        ("data_wait",),
    ),
    Fix(
        "pinned_memory",
        "DataLoader(pin_memory=True)",
        _pinned,
        "pinned",
        ("pageable_copies",),
    ),
    Fix(
        "gradients_to_none",
        "zero_grad(set_to_none=True)",
        _zeroes_grads,
        "gradients",
        lines=lambda facts: facts.zeroed_lines,
        edit="zero_grad()",
    ),
    Fix("cudnn_benchmark", "torch.backends.cudnn.benchmark = True", _benchmark, "benchmark"),
    Fix("sdpa_cudnn", "cuDNN's attention", _attention, "attention"),
    Fix("sdpa_flash", "FlashAttention", _attention, "attention"),
    Fix(
        "no_item",
        "no .item() in the step",
        _items,
        "items",
        ("waits_empty_queue",),
        lines=lambda facts: facts.item_lines,
        edit="keep the tensor, and read it every hundred steps",
    ),
    # last: it captures what the others have changed
    Fix(
        "cuda_graph",
        "the whole step as one CUDA graph",
        _graph,
        "graph",
        ("many_small_operations",),
    ),
)


def gaining(tried: Sequence[FixReport]) -> list[Fix]:
    """Return the fix that gains most of each group, in the order in which they are applied."""
    speedups = {fix.name: fix.speedup.value for fix in tried if fix.gained and fix.speedup}
    best: dict[str, Fix] = {}
    for fix in FIXES:
        speedup = speedups.get(fix.name, 0.0)
        before = best.get(fix.group)
        if speedup and (before is None or speedup > speedups[before.name]):
            best[fix.group] = fix
    return [fix for fix in FIXES if fix in best.values()]
