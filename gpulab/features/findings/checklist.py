"""The questions with which performance guides end, answered for one step from what was measured.

Each has yes, no, or what is missing; the numbers behind it; and the finding or the lesson that
follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpulab.core.payloads import BUSY
from gpulab.core.statuses import Status
from gpulab.features.findings import libraries as vendors
from gpulab.features.findings.advice import Evidence
from gpulab.features.findings.report import RULES
from gpulab.features.findings.rule import (
    Holds,
    Missing,
    by_telemetry,
    declared,
    measured,
    profiled,
    static,
)
from gpulab.features.findings.step import Step

_NO_PROFILE = Missing("where the time of a step goes", "--profile all")
_NO_GPU = Missing("a GPU: this run was on a CPU")
_NO_SOLO = Missing("a solo run with telemetry of the GPU", "--telemetry on")


class Said(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "not measurable here"


@dataclass(frozen=True)
class Answer:
    """`finding` is the code of a rule, `lesson` a scenario: what follows. `missing` says why it is
    unknown.
    """

    said: Said
    numbers: tuple[Evidence, ...] = ()
    text: str = ""
    finding: str | None = None
    lesson: str | None = None
    missing: Missing | None = None


@dataclass(frozen=True)
class Question:
    """`good` is the answer that nothing follows from; None where neither is better."""

    text: str
    answer: Callable[[Step], Answer]
    good: Said | None = Said.NO


def _yes_or_no(holds: bool, *numbers: Evidence, **more: str | None) -> Answer:
    return Answer(Said.YES if holds else Said.NO, numbers, **more)  # type: ignore[arg-type]


def _unknown(missing: Missing) -> Answer:
    return Answer(Said.UNKNOWN, missing=missing)


_RULES = {rule.name: rule for rule in RULES}


def _by_rule(
    code: str, number: Callable[[Step], Evidence | None] = lambda _: None
) -> Callable[[Step], Answer]:
    """Yes where the rule holds; where it does not, with the number that it looked at."""

    def answer(step: Step) -> Answer:
        rule = _RULES[code]
        judged = rule.judge(step)
        if isinstance(judged, Missing):
            return _unknown(judged)
        if isinstance(judged, Holds):
            return Answer(Said.YES, judged.evidence[:2], finding=code, lesson=rule.lesson)
        shown = number(step) or _time(step)
        return Answer(Said.NO, (shown,) if shown else ())

    return answer


def _on_gpu(answer: Callable[[Step], Answer]) -> Callable[[Step], Answer]:
    """What only a GPU can have."""

    def of_gpu(step: Step) -> Answer:
        return answer(step) if step.on_gpu else _unknown(_NO_GPU)

    return of_gpu


def _part(*parts: str) -> Callable[[Step], Evidence | None]:
    def number(step: Step) -> Evidence | None:
        return profiled(" + ".join(parts), step.share(*parts)) if step.recorded else None

    return number


def _fact(name: str, field: str, unit: str) -> Callable[[Step], Evidence | None]:
    """What the recording counted."""

    def number(step: Step) -> Evidence | None:
        value = getattr(step.facts, field, None)
        return profiled(name, value, unit) if value is not None else None

    return number


def _either(
    *numbers: Callable[[Step], Evidence | None],
) -> Callable[[Step], Evidence | None]:
    """The first that is known."""

    def number(step: Step) -> Evidence | None:
        return next((shown for each in numbers if (shown := each(step)) is not None), None)

    return number


def _products(step: Step) -> Evidence:
    return profiled("products", min(1.0, step.share_of_rows(step.products)))


def _operations(step: Step) -> Evidence | None:
    operations = step.variant.operations
    return measured("operations", operations, "a step") if operations is not None else None


def _blocks(step: Step) -> Evidence | None:
    launches = step.facts.launches if step.facts else []
    return profiled("blocks of its kernel", launches[0].blocks, "blocks") if launches else None


def _time(step: Step) -> Evidence | None:
    return measured("step", step.step_s, "s") if step.step_s else None


def _of_roof(step: Step) -> Evidence | None:
    return measured("of its roof", step.fraction) if step.fraction is not None else None


_BATCHES = _either(_fact("batches", "loads", "a step"), _part("data wait"), _time)
_LAUNCHES = _either(_part("launch-bound"), _operations, _time)
_UPDATES = _either(_fact("its kernels", "optimizer_kernels", "a step"), _time)
_COMPILATIONS = _either(_fact("compilations", "compilations", "a step"), _time)


def _device_is_busy(step: Step) -> Answer:
    if not step.recorded:
        return _unknown(_NO_PROFILE)
    if not step.on_gpu:
        computing = step.share(*BUSY)
        return _yes_or_no(computing >= _BUSY, profiled("computing", computing))
    busy = 1 - step.idle
    return _yes_or_no(busy >= _BUSY, profiled("device busy", busy), lesson="utilization")


_BUSY = 0.8
_LITTLE = 0.1


def _uncertain(step: Step) -> Answer:
    goodput = step.variant.goodput
    if goodput is None or goodput.reliable is None:
        return _unknown(_NO_PROFILE)
    numbers = [profiled("uncertainty", step.uncertainty)]
    if goodput.overhead is not None:
        numbers.append(profiled("what the profiler adds", goodput.overhead))
    return _yes_or_no(goodput.reliable, *numbers)


def _warm_up_apart(step: Step) -> Answer:
    first_s, time = step.variant.first_step_s, step.variant.time_s
    if first_s is None or time is None:
        return _unknown(Missing("the first step"))
    ratio = first_s / time.median
    return _yes_or_no(
        True, measured("first step over a steady one", ratio, "x"), lesson="cold_start"
    )


def _clocks_hold(step: Step) -> Answer:
    judged = _RULES["clocks_held_back"].judge(step)
    if isinstance(judged, Missing):
        return _unknown(judged)
    if isinstance(judged, Holds):
        return Answer(Said.NO, judged.evidence, finding="clocks_held_back")
    solo = step.variant.solo_run
    if solo is None or solo.slowed is None:
        return _unknown(_NO_SOLO)
    return _yes_or_no(True, by_telemetry("readings with a slowdown", solo.slowed))


def _counted(field: str, name: str, least: float, lesson: str) -> Callable[[Step], Answer]:
    """Whether what the device counted is at least so much."""

    def answer(step: Step) -> Answer:
        value = step.counters.get(field)
        if value is None:
            return _unknown(_NO_SOLO)
        return _yes_or_no(value >= least, by_telemetry(name, value), lesson=lesson)

    return answer


_SMS_BUSY = _counted("sm", "SMs busy", 0.8, "utilization")
_OCCUPIED = _counted("occupancy", "occupancy", 0.5, "occupancy")
_DRAM = _counted("dram", "DRAM", 0.6, "vector_add")


def _goodput(step: Step) -> Answer:
    goodput = step.variant.goodput
    if goodput is None or goodput.goodput is None:
        return _unknown(_NO_PROFILE)
    useful = goodput.goodput
    return _yes_or_no(useful >= _BUSY, profiled("useful", useful), lesson="input_pipeline")


def _memory_fits(step: Step) -> Answer:
    memory, device = step.variant.memory, step.report.device
    if memory is None or device is None or not device.memory_bytes:
        return _unknown(Missing("memory of the variant alone", "--profile all"))
    used = (memory.reserved or memory.peak) / device.memory_bytes
    return _yes_or_no(
        used < 0.9,
        measured("peak", memory.peak, "bytes"),
        measured("of the device", used),
        lesson="recomputation",
    )


def _bound_is(*bounds: str) -> Callable[[Step], Answer]:
    def answer(step: Step) -> Answer:
        if not step.bound or step.bound == "unknown":
            return _unknown(Missing("declared work (bytes= or flops=) and ceilings"))
        numbers = []
        for name in ("memory", "cache", "arithmetic", "dram"):
            value = step.cause_value(name)
            if value is not None:
                numbers.append(measured(f"{name} roof", value))
        words = "unexplained" if step.bound == "unexplained" else f"{step.bound}-bound"
        return _yes_or_no(step.bound in bounds, *numbers, text=words)

    return answer


def _at_roof(step: Step) -> Answer:
    fraction = step.fraction
    if fraction is None:
        return _unknown(Missing("declared work (bytes= or flops=) and ceilings"))
    roof = step.variant.roofline.roof if step.variant.roofline else ""
    return _yes_or_no(fraction >= _BUSY, measured(f"of {roof}", fraction), lesson="roofline_tour")


def _moves_more(step: Step) -> Answer:
    point = step.variant.roofline
    if point is None or point.bytes_counted is None:
        return _unknown(Missing("declared bytes, and a GPU that counts its own", "--telemetry on"))
    ratio = point.bytes_ratio or 1.0
    return _yes_or_no(ratio > 1.2, by_telemetry("bytes moved over declared", ratio, "x"))


def _has_kernels(answer: Callable[[Step], Answer]) -> Callable[[Step], Answer]:
    def of_kernels(step: Step) -> Answer:
        if not step.variant.kernels:
            return _unknown(Missing("the code of its kernels: it runs those of libraries"))
        return answer(step)

    return of_kernels


def _wide_loads(step: Step) -> Answer:
    loads = {128: 0, 64: 0, 32: 0}
    for kernel in step.variant.kernels:
        for width in loads:
            loads[width] += kernel.instructions.get(f"load_{width}", 0)
    total = sum(loads.values())
    if not total:
        return _unknown(Missing("loads of global memory in its kernels"))
    return _yes_or_no(
        loads[128] > 0, static("128-bit loads", loads[128] / total), lesson="vectorized_loads"
    )


def _use(step: Step) -> Evidence | None:
    uses = [
        use
        for kernel in step.variant.kernels
        for use in (kernel.load_use, kernel.store_use)
        if use is not None
    ]
    return static("of sectors that are used", min(uses)) if uses else None


def _occupancy(step: Step) -> Evidence | None:
    if "occupancy" in step.counters:
        return by_telemetry("occupancy", step.counters["occupancy"])
    fits = [kernel.occupancy for kernel in step.variant.kernels if kernel.occupancy is not None]
    return static("occupancy that fits", min(fits)) if fits else None


def _conflicts(step: Step) -> Evidence | None:
    ways = [kernel.bank_conflicts for kernel in step.variant.kernels if kernel.bank_conflicts]
    return static("passes of the worst access", max(ways), "passes") if ways else None


def _spilled(step: Step) -> Evidence | None:
    kernels = step.variant.kernels
    if not kernels:
        return None
    return static("spilled", max(kernel.spill_bytes for kernel in kernels), "bytes a thread")


def _tensor_cores(step: Step) -> Answer:
    tensor = step.counters.get("tensor")
    if not step.on_gpu or tensor is None:
        return _unknown(_NO_SOLO)
    judged = _RULES["fp32_products"].judge(step)
    found = "fp32_products" if isinstance(judged, Holds) else None
    return _yes_or_no(
        tensor >= 0.05, by_telemetry("tensor cores", tensor), finding=found, lesson="precision"
    )


def _dtype(step: Step) -> Answer:
    if step.variant.dtype is None:
        return _unknown(Missing("the dtype of its work (dtype=)"))
    lower = step.variant.dtype not in ("fp32", "fp64")
    return Answer(
        Said.YES if lower else Said.NO, text=step.variant.dtype, lesson="autocast_training"
    )


def _intense(step: Step) -> Answer:
    point = step.variant.roofline
    if point is None or point.intensity is None:
        return _unknown(Missing("declared bytes and flops"))
    return _yes_or_no(
        point.bound == "compute" or not point.roof.startswith("device memory"),
        declared("arithmetic intensity", point.intensity, "FLOP/byte"),
        lesson="roofline_walk",
    )


def _library(step: Step) -> Answer:
    shares = vendors.libraries(step)
    if not shares:
        return _unknown(Missing("the operations of the step", "--profile all"))
    numbers = tuple(profiled(name, min(share, 1.0)) for name, share in list(shares.items())[:3])
    return Answer(Said.YES if vendors.vendor_share(step) >= _LITTLE else Said.NO, numbers)


def _compiled(step: Step) -> Answer:
    facts = step.facts
    if facts is None:
        return _unknown(_NO_PROFILE)
    return _yes_or_no(
        facts.graph_breaks is not None or "Triton" in vendors.libraries(step),
        profiled("compiled pieces", facts.compiled_regions, "a step"),
        lesson="compile_workloads",
    )


def _is_right(step: Step) -> Answer:
    if step.variant.status == Status.WRONG:
        return Answer(Said.NO)
    error = step.variant.error
    if error is None:
        return _unknown(Missing("a baseline that computes the same"))
    return _yes_or_no(True, measured("relative error", error, "of the baseline"))


def _faster(step: Step) -> Answer:
    comparison = step.report.comparison(step.variant.name)
    if comparison is None or comparison.speedup is None:
        return _unknown(Missing("a comparison with a baseline"))
    return _yes_or_no(
        comparison.speedup < 1, measured("speedup", comparison.speedup, f"x {comparison.verdict}")
    )


def _nothing_left(step: Step) -> Answer:
    judged = _RULES["nothing_to_gain"].judge(step)
    others = [advice for advice in step.variant.advice if advice.gain_high]
    if isinstance(judged, Missing):
        return _unknown(judged)
    if isinstance(judged, Holds) and not others:
        return Answer(Said.YES, judged.evidence[:1], finding="nothing_to_gain")
    codes = ", ".join(advice.finding.code for advice in others[:2])
    shown = _either(_of_roof, _time)(step)
    numbers = (shown,) if shown and not codes else ()
    return Answer(Said.NO, numbers, codes, others[0].finding.code if others else None)


_WAITS = (
    "data_wait",
    "loading_too_slow",
    "waits_empty_queue",
    "pageable_copies",
    "copies_not_overlapped",
    "allocates_each_step",
    "many_small_operations",
)


def _first(step: Step, codes: Iterable[str]) -> Answer:
    """The first of these findings that the step has."""
    if not step.recorded:
        return _unknown(_NO_PROFILE)
    for advice in step.variant.advice:
        if advice.finding.code in codes:
            return Answer(
                Said.YES,
                tuple(advice.evidence[:1]),
                finding=advice.finding.code,
                lesson=advice.lesson,
            )
    return Answer(Said.NO, (profiled("computing", step.share(*BUSY)),))


SECTIONS: dict[str, Sequence[Question]] = {
    "profiling checklist": (
        Question("Is the device busy?", _device_is_busy, Said.YES),
        Question("Does it wait for data?", _by_rule("data_wait", _part("data wait"))),
        Question(
            "Do loaders' workers fall behind?",
            _by_rule("loading_too_slow", _BATCHES),
        ),
        Question("Many small launches?", _by_rule("many_small_operations", _LAUNCHES)),
        Question(
            "Does the host wait in the step?", _on_gpu(_by_rule("waits_empty_queue", _part("sync")))
        ),
        Question(
            "Copies from pageable memory?", _on_gpu(_by_rule("pageable_copies", _part("copies")))
        ),
        Question(
            "Copies without work beside?",
            _on_gpu(_by_rule("copies_not_overlapped", _part("copies"))),
        ),
        Question("Memory allocated in each step?", _by_rule("allocates_each_step", _part("alloc"))),
        Question("Is a late rank waited for?", _by_rule("rank_late")),
        Question("Are warm-up and steps apart?", _warm_up_apart, Said.YES),
        Question("Is the profile reliable?", _uncertain, Said.YES),
        Question("Do the clocks hold?", _on_gpu(_clocks_hold), Said.YES),
    ),
    "metrics": (
        Question("Is goodput 80 % or more?", _goodput, Said.YES),
        Question(
            "SMs busy 80 % or more?", _counted("sm", "SMs busy", 0.8, "utilization"), Said.YES
        ),
        Question(
            "Occupancy 50 % or more?",
            _counted("occupancy", "occupancy", 0.5, "occupancy"),
            Said.YES,
        ),
        Question("Tensor cores at work?", _on_gpu(_tensor_cores), None),
        Question("DRAM 60 % or more?", _on_gpu(_DRAM), Said.YES),
        Question("Does it fit in 90 % of memory?", _memory_fits, Said.YES),
    ),
    "low bandwidth": (
        Question("Does memory limit it?", _bound_is("memory", "cache"), None),
        Question(
            "Are accesses not coalesced?", _on_gpu(_has_kernels(_by_rule("sectors_wasted", _use)))
        ),
        Question("Are its loads 128 bits wide?", _on_gpu(_has_kernels(_wide_loads)), Said.YES),
        Question("Bank conflicts?", _on_gpu(_has_kernels(_by_rule("bank_conflicts", _conflicts)))),
        Question(
            "Too few warps in flight?", _on_gpu(_has_kernels(_by_rule("low_occupancy", _occupancy)))
        ),
        Question("Does it move more than it must?", _on_gpu(_moves_more)),
        Question("Pointwise operations not fused?", _by_rule("not_fused", _operations)),
    ),
    "low compute": (
        Question("Does arithmetic limit it?", _bound_is("compute"), None),
        Question("Is it above the memory slope?", _intense, None),
        Question("fp32 products without TF32?", _on_gpu(_by_rule("fp32_products", _products))),
        Question("Is its dtype 16 bits or fewer?", _dtype, None),
        Question(
            "Sizes that miss the fast kernel?", _on_gpu(_by_rule("slow_product_kernel", _products))
        ),
        Question(
            "Do registers spill?", _on_gpu(_has_kernels(_by_rule("registers_spill", _spilled)))
        ),
        Question("Does the grid leave a tail?", _on_gpu(_by_rule("tail_of_grid", _blocks))),
    ),
    "slower than PyTorch": (
        Question("Is the result right?", _is_right, Said.YES),
        Question("Is it slower than its baseline?", _faster),
        Question("Do a vendor's kernels run?", _library, None),
        Question("Is it compiled?", _compiled, None),
        Question(
            "Compiling, or broken graphs?",
            _by_rule("compiles_in_steps", _COMPILATIONS),
        ),
        Question(
            "Optimizer in many kernels?",
            _by_rule("optimizer_not_fused", _UPDATES),
        ),
    ),
    "flow chart": (
        Question("1 waits (data, host, copies)?", lambda step: _first(step, _WAITS)),
        Question("2 else memory?", _bound_is("memory", "cache"), None),
        Question("3 else arithmetic?", _bound_is("compute", "power"), None),
        Question("4 else latency?", _bound_is("latency"), None),
        Question("5 is it at its roof?", _at_roof, Said.YES),
        Question("6 nothing left to gain?", _nothing_left, Said.YES),
    ),
}


def checklist(step: Step) -> dict[str, list[tuple[Question, Answer]]]:
    """Every question with its answer, by section."""
    return {
        section: [(question, question.answer(step)) for question in questions]
        for section, questions in SECTIONS.items()
    }
