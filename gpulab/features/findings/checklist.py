"""The questions with which performance guides end, answered for one step from what was measured.

*Yes* where a rule holds; *no* only with the number that decides it; else it is not judged, and why.
A question that nothing here can answer (of a GPU on a CPU, of kernels where there is no code of
them) is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpulab.core.payloads import BUSY
from gpulab.core.statuses import Status
from gpulab.features.findings.advice import Evidence
from gpulab.features.findings.computing import fp32_share, pointwise_share
from gpulab.features.findings.report import RULES
from gpulab.features.findings.rule import (
    Match,
    NotMeasured,
    by_telemetry,
    measured,
    profiled,
    static,
)
from gpulab.features.findings.step import Step

_NO_PROFILE = NotMeasured("where the time of a step goes", "--profile all")
_NO_BYTES = NotMeasured("declared bytes, and a GPU that counts its own", "--telemetry on")
_NO_SOLO = NotMeasured("a solo run with telemetry of the GPU", "--telemetry on")
_FACTS = "a recording by this version"
_BUSY = 0.8
_FULL = 0.9
_DECLARED = 1.2


class Said(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "not judged"


@dataclass(frozen=True)
class Answer:
    """`finding` is the code of a rule, `lesson` a scenario: what follows. `missing` says why it is
    unknown.
    """

    said: Said
    numbers: tuple[Evidence, ...] = ()
    finding: str | None = None
    lesson: str | None = None
    missing: NotMeasured | None = None


@dataclass(frozen=True)
class Question:
    """`good` is the answer that nothing follows from. `asked`: of which steps it can be asked."""

    text: str
    answer: Callable[[Step], Answer]
    good: Said = Said.NO
    asked: Callable[[Step], bool] = lambda _: True


_STARTS = "what starting its operations takes, of a CPU"
_CODE = "code of torch.compile: none runs, or it is compiled again"
_SHARED = "accesses to shared memory in its kernels"
Number = Callable[[Step], Evidence | None]
_RULES = {rule.name: rule for rule in RULES}


def _yes_or_no(holds: bool, *numbers: Evidence, lesson: str | None = None) -> Answer:
    return Answer(Said.YES if holds else Said.NO, numbers, lesson=lesson)


def _unknown(missing: NotMeasured) -> Answer:
    return Answer(Said.UNKNOWN, missing=missing)


def _rule(
    code: str, number: Number, least: float, *, above: bool = False, without: str = _FACTS
) -> Callable[[Step], Answer]:
    """Yes where the rule holds. No where the number that it looks at first is below `least`, or
    `above` it. `without`: what is missing where there is no such number.
    """

    def answer(step: Step) -> Answer:
        rule = _RULES[code]
        judged = rule.judge(step)
        if isinstance(judged, Match):
            return Answer(Said.YES, judged.evidence[:2], finding=code, lesson=rule.lesson)
        shown = number(step)
        if shown is not None and (shown.value > least if above else shown.value < least):
            return Answer(Said.NO, (shown,))
        if isinstance(judged, NotMeasured):
            return _unknown(judged)
        if shown is None:
            return _unknown(NotMeasured(without))
        return Answer(Said.UNKNOWN, (shown,), missing=NotMeasured("more than this number"))

    return answer


def _part(*parts: str) -> Number:
    def number(step: Step) -> Evidence | None:
        return profiled(" + ".join(parts), step.share(*parts)) if step.recorded else None

    return number


def _step_share(name: str, field: str) -> Number:
    """Return what the recording says of it, as a share of the step."""

    def number(step: Step) -> Evidence | None:
        facts = step.facts
        if facts is None or not facts.step_s:
            return None
        return profiled(name, min(1.0, getattr(facts, field) / facts.step_s))

    return number


def _idle(step: Step) -> Evidence | None:
    if not step.on_gpu or not step.recorded:
        return None
    return profiled("device idle", step.idle)


def _pageable(step: Step) -> Evidence | None:
    if not step.recorded:
        return None
    return profiled("copies of pageable memory", sum(step.copied("Pageable")))


def _allocating(step: Step) -> Evidence | None:
    if step.on_gpu:
        return _part("alloc")(step)
    return None if step.faults is None else measured("page faults", step.faults, "a step")


def _lateness(step: Step) -> Evidence | None:
    job = step.ranks
    if job is None or not job.ranks or not job.step_s:
        return None
    latest_s = max(rank.late_s for rank in job.ranks)
    return measured("the latest rank", min(1.0, max(0.0, latest_s) / job.step_s))


def _pointwise(step: Step) -> Evidence | None:
    if not step.operations:
        return None
    return profiled("pointwise operations", min(1.0, pointwise_share(step)))


def _fp32(step: Step) -> Evidence | None:
    return profiled("products in fp32", fp32_share(step)) if step.operations else None


def _products(step: Step) -> Evidence | None:
    if not step.operations:
        return None
    return profiled("products", min(1.0, step.share_of_rows(step.products)))


def _broken(step: Step) -> Evidence | None:
    """None where nothing is compiled, or it is compiled again."""
    facts = step.facts
    if facts is None or facts.graph_breaks is None or facts.compilations:
        return None
    return measured("graph breaks", facts.graph_breaks, "in all")


def _use(step: Step) -> Evidence | None:
    kernels = step.compiled_kernels
    uses = [use for kernel in kernels for use in (kernel.load_use, kernel.store_use)]
    known = [use for use in uses if use is not None]
    return static("of sectors that are used", min(known)) if known else None


def _occupancy(step: Step) -> Evidence | None:
    if "occupancy" in step.counters:
        return by_telemetry("occupancy", step.counters["occupancy"])
    fits = [kernel.occupancy for kernel in step.compiled_kernels if kernel.occupancy is not None]
    return static("occupancy that fits", min(fits)) if fits else None


def _conflicts(step: Step) -> Evidence | None:
    ways = [kernel.bank_conflicts for kernel in step.compiled_kernels if kernel.bank_conflicts]
    return static("passes of the worst access", max(ways), "passes") if ways else None


def _spilled(step: Step) -> Evidence | None:
    spilled = [kernel.spill_bytes for kernel in step.compiled_kernels]
    return static("spilled", max(spilled), "bytes a thread") if spilled else None


def _device_is_busy(step: Step) -> Answer:
    if not step.recorded:
        return _unknown(_NO_PROFILE)
    busy = step.share(*BUSY)
    what = "device busy" if step.on_gpu else "computing"
    return _yes_or_no(busy >= _BUSY, profiled(what, busy))


def _reliable(step: Step) -> Answer:
    goodput = step.variant.goodput
    if goodput is None or goodput.reliable is None:
        return _unknown(_NO_PROFILE)
    numbers = [profiled("uncertainty", step.uncertainty)]
    if goodput.overhead is not None:
        numbers.append(profiled("what the profiler adds", goodput.overhead))
    return _yes_or_no(goodput.reliable, *numbers)


def _clocks_hold(step: Step) -> Answer:
    judged = _RULES["clocks_held_back"].judge(step)
    solo = step.variant.solo_run
    if isinstance(judged, NotMeasured) or solo is None or solo.slowed is None:
        return _unknown(_NO_SOLO)
    if isinstance(judged, Match):
        return Answer(Said.NO, judged.evidence, finding="clocks_held_back")
    return _yes_or_no(True, by_telemetry("readings with a slowdown", solo.slowed))


def _sms_busy(step: Step) -> Answer:
    value = step.counters.get("sm")
    if value is None:
        return _unknown(_NO_SOLO)
    return _yes_or_no(value >= _BUSY, by_telemetry("SMs busy", value), lesson="utilization")


def _memory_fits(step: Step) -> Answer:
    memory, device = step.variant.get("memory"), step.report.device
    if memory is None or device is None or not device.memory_bytes:
        return _unknown(NotMeasured("memory of the variant alone", "--profile all"))
    used = (memory.reserved_bytes or memory.peak_bytes) / device.memory_bytes
    peak = measured("peak", memory.peak_bytes, "bytes")
    of_device = measured("of the device", used)
    return _yes_or_no(used < _FULL, peak, of_device, lesson="recomputation")


def _moves_more(step: Step) -> Answer:
    point = step.variant.roofline
    if point is None or not point.bytes_counted or not step.variant.bytes:
        return _unknown(_NO_BYTES)
    ratio = point.bytes_counted / step.variant.bytes
    return _yes_or_no(ratio > _DECLARED, by_telemetry("bytes moved over declared", ratio, "x"))


def _is_right(step: Step) -> Answer:
    if step.variant.status == Status.WRONG:
        return Answer(Said.NO)
    error = step.variant.error
    if error is None:
        return _unknown(NotMeasured("a baseline that computes the same"))
    return _yes_or_no(True, measured("relative error", error, "of the baseline"))


def _slower(step: Step) -> Answer:
    comparison = step.report.comparison(step.variant.name)
    if comparison is None or comparison.speedup is None:
        return _unknown(NotMeasured("a comparison with a baseline"))
    ratio = measured("speedup", comparison.speedup.value, f"x {comparison.verdict}")
    return _yes_or_no(comparison.speedup.value < 1, ratio)


def _on_gpu(step: Step) -> bool:
    return step.on_gpu


def _has_kernels(step: Step) -> bool:
    return step.on_gpu and bool(step.compiled_kernels)


def _has_ranks(step: Step) -> bool:
    return step.ranks is not None


SECTIONS: dict[str, Sequence[Question]] = {
    "waiting": (
        Question("Is the device busy?", _device_is_busy, Said.YES),
        Question("Does it wait for data?", _rule("data_wait", _part("data wait"), 0.1)),
        Question(
            "Many small launches?", _rule("many_small_operations", _idle, 0.2, without=_STARTS)
        ),
        Question(
            "Does the host wait in the step?",
            _rule("waits_empty_queue", _step_share("host in waits", "sync_s"), 0.1),
            asked=_on_gpu,
        ),
        Question(
            "Copies from pageable memory?",
            _rule("pageable_copies", _pageable, 0.1),
            asked=_on_gpu,
        ),
        Question(
            "Copies without work beside?",
            _rule("copies_not_overlapped", _part("copies"), 0.1),
            asked=_on_gpu,
        ),
        Question("Memory allocated in each step?", _rule("allocates_each_step", _allocating, 0.05)),
        Question(
            "Is a late rank waited for?",
            _rule("rank_late", _lateness, 0.05),
            asked=_has_ranks,
        ),
        Question(
            "Compiling, or broken graphs?", _rule("compiles_in_steps", _broken, 1, without=_CODE)
        ),
        Question(
            "Optimizer in many kernels?",
            _rule("optimizer_not_fused", _step_share("optimizer", "optimizer_s"), 0.1),
        ),
    ),
    "memory": (
        Question(
            "Are accesses not coalesced?",
            _rule("sectors_wasted", _use, 0.5, above=True),
            asked=_has_kernels,
        ),
        Question(
            "Bank conflicts?",
            _rule("bank_conflicts", _conflicts, 2, without=_SHARED),
            asked=_has_kernels,
        ),
        Question("Does it move more than it must?", _moves_more, asked=_on_gpu),
        Question("Pointwise operations not fused?", _rule("not_fused", _pointwise, 0.5)),
        Question("Does it fit in 90 % of memory?", _memory_fits, Said.YES, asked=_on_gpu),
    ),
    "arithmetic": (
        Question("SMs busy 80 % or more?", _sms_busy, Said.YES, asked=_on_gpu),
        Question(
            "Too few warps in flight?",
            _rule("low_occupancy", _occupancy, 0.25, above=True),
            asked=_has_kernels,
        ),
        Question("fp32 products without TF32?", _rule("fp32_products", _fp32, 0.5), asked=_on_gpu),
        Question(
            "Sizes that miss the fast kernel?",
            _rule("slow_product_kernel", _products, 0.3),
            asked=_on_gpu,
        ),
        Question("Do registers spill?", _rule("registers_spill", _spilled, 1), asked=_has_kernels),
    ),
    "result": (
        Question("Is the result right?", _is_right, Said.YES),
        Question("Is it slower than its baseline?", _slower),
        Question("Is the profile reliable?", _reliable, Said.YES),
        Question("Do the clocks hold?", _clocks_hold, Said.YES, asked=_on_gpu),
    ),
}


def checklist(step: Step) -> dict[str, list[tuple[Question, Answer]]]:
    """Every question that can be asked with its answer, by section."""
    return {
        section: [(each, each.answer(step)) for each in questions if each.asked(step)]
        for section, questions in SECTIONS.items()
    }
