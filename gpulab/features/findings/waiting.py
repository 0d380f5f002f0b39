"""Rules about time in which nothing is computed: data, launches, waits, copies, memory, compilers,
the optimizer, clocks, other ranks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from gpulab.core.findings import Value
from gpulab.core.payloads import HOST_TO_DEVICE, PAGE_FAULT, UNSTEADY
from gpulab.features.findings import findings
from gpulab.features.findings.program_lines import explained_lines
from gpulab.features.findings.rule import (
    COMPUTED,
    LAUNCHED,
    Match,
    NotMeasured,
    Rule,
    RuleResult,
    Threshold,
    by_telemetry,
    measured,
    profiled,
)
from gpulab.features.findings.step import Step

if TYPE_CHECKING:
    from gpulab.features.goodput.events import WindowFacts

_PROFILE = "--profile all"
_NO_PROFILE = NotMeasured("where the time of a step goes", _PROFILE)
_NO_FACTS = NotMeasured("a recording by this version", _PROFILE)
_DATA = ("data wait",)
_WAITS_FOR_DATA = Threshold(0.1, "TraceML: 10 and 20 %; gpu-idle 20 %, gpuprof 15 and 30 %")
_IDLE = Threshold(0.2, "gpulab's own bound; TensorRT-LLM 10 and 30 %")
_IDLE_SHARE = Threshold(0.5, "TensorRT-LLM: causes of at least half of the idle time")
_LAUNCH_S = Threshold(1e-4, "gpulab: a launch takes 5 us, with Python around it 40 us")
_SEVERAL = Threshold(4, "gpulab: fewer operations cannot be made many fewer")
_MOST_CALLS = 0.3
_SYNCHRONISES = Threshold(0.1, "fournex 10 %; gpu-idle: an .item() behind long kernels is free")
_COPIES = Threshold(0.1, "gpu-idle 10 %, fournex 15 %; nsys cuda_memcpy_async")
_HIDDEN = Threshold(0.5, "gpulab: most of the copies would have to be hidden")
_ALLOCATES = Threshold(0.05, "gpulab: more than the uncertainty of a recording")
_FAULTS = Threshold(0.2, "gpulab's own bound of a CPU")
_LARGE_BYTES = 32 * 2**20
"""From here on glibc takes an array from the system, and gives it back."""
_PAGE_BYTES = 4096
_FRESH_SHARE = 0.25
"""Of the fresh bytes of a step: a line that matters."""
_ONCE = 1.01
_DISTURBED = 0.5
_OPTIMIZES = Threshold(0.1, "gpulab's own profiles")
_KERNELS = Threshold(3.0, "gpulab: a fused or foreach optimizer has fewer than one a parameter")
_SLOWED = Threshold(0.05, "gpuprof: 5 % of the samples")
_BELOW_CLOCK = Threshold(0.15, "TensorRT-LLM: 15 % below the highest clock")
_HOT = Threshold(82.0, "TensorRT-LLM: 82 C and more")


def _data_wait(step: Step) -> float | None:
    """The share of the step that waits for data: as recorded, else by the phase of that name."""
    if step.recorded:
        return step.share("data wait")
    return step.phases.get("data")


def _waits_for_data(step: Step) -> RuleResult:
    share = _data_wait(step)
    if share is None:
        return _NO_PROFILE
    if share < _WAITS_FOR_DATA.value:
        return None
    known = profiled if step.recorded else measured
    evidence = [known("data wait", share)]
    workers = step.facts.workers if step.facts else None
    if workers:
        evidence.append(measured("workers", workers, "processes"))
    return Match({"share": share, "workers": workers or None}, share, tuple(evidence), takes=_DATA)


def _starts_operations(step: Step) -> RuleResult:
    if step.compiled:
        return None  # it cannot be told to compile
    if not step.on_gpu:
        share = step.cause_value("share")
        if step.cause != "launches_take_the_time" or share is None or share < _IDLE.value:
            return None
        if (step.variant.operations or 0) < _SEVERAL.value:
            return None
        return Match(
            {
                "share": share,
                "operations": step.variant.operations,
                "line": _line_of_most_calls(step),
            },
            min(share, 1.0),
            (measured("share of starting operations", share),),
            takes=COMPUTED + LAUNCHED,
        )
    if not step.recorded:
        return _waits_by_clock(step) or _NO_PROFILE
    if step.facts is None and _reads(step):
        return _NO_FACTS  # what waits for the device each time starts nothing meanwhile
    idle = step.idle
    launching = step.share("launch-bound")
    if idle < _IDLE.value or launching < _IDLE_SHARE.value * idle:
        return None
    kernels = step.facts.kernels if step.facts else None
    operations = kernels or step.variant.operations or None
    # what takes longer starts no operation: it does something else on the host
    if operations and launching * (step.step_s or 0.0) > _LAUNCH_S.value * operations:
        return None
    if operations and operations < _SEVERAL.value:
        return None
    return Match(
        {"share": launching, "operations": operations},
        launching,
        (profiled("idle", idle), profiled("launch-bound", launching)),
        takes=LAUNCHED,
    )


def _reads(step: Step) -> bool:
    """Return whether it copies from the device, as .item() does."""
    return any("DtoH" in row.name and row.calls >= 1 for row in step.operations)


def _line_of_most_calls(step: Step) -> str | None:
    """The line that calls most of a step's operations; None where there is none."""
    calls: dict[str, float] = defaultdict(float)
    for row in step.operations:
        if row.line:
            calls[row.line] += row.calls
    total = sum(row.calls for row in step.operations)
    line = max(calls, key=lambda each: calls[each], default=None)
    return line if line and calls[line] >= _MOST_CALLS * total else None


def _waits_by_clock(step: Step) -> RuleResult:
    """Without a recording: by the device's own clock beside the host's."""
    waiting = step.cause_value("share")
    operations = step.variant.operations
    if step.cause != "device_waits_for_launches" or waiting is None or waiting < _IDLE.value:
        return None
    if operations is not None and operations < _SEVERAL.value:
        return None
    evidence = (measured("the device waits for the host", waiting),)
    values = {"share": waiting, "operations": operations}
    return Match(values, waiting, evidence, takes=LAUNCHED)


def _empties_queue(step: Step) -> RuleResult:
    if not step.on_gpu:
        return None
    if not step.recorded:
        return _NO_PROFILE
    facts = step.facts
    if facts is None:
        share = step.share("sync")
        if share < _SYNCHRONISES.value:
            return _NO_FACTS if _reads(step) and step.idle >= _IDLE.value else None
        waits = sum(row.calls for row in step.operations if "DtoH" in row.name)
        values = {"share": share, "waits": waits, "idle": step.idle}
        return Match(values, step.idle, (profiled("sync", share),), takes=LAUNCHED)
    if facts.synchronizations < 1 or not step.step_s:
        return None
    # the host does the rest more slowly under the profiler, so it waits less than without it
    blocked = min(1.0, facts.sync_s / step.step_s)
    if min(step.idle, blocked) < _SYNCHRONISES.value:
        return None
    return Match(
        {"share": blocked, "waits": facts.synchronizations, "idle": step.idle},
        step.idle,
        (
            profiled("waits", facts.synchronizations, "calls a step"),
            profiled("host in them", blocked),
            profiled("device idle", step.idle),
        ),
        takes=(*LAUNCHED, "copies"),
    )


def _copies_pageable(step: Step) -> RuleResult:
    if not step.on_gpu:
        return None
    if not step.recorded:
        return _NO_PROFILE
    to_device, to_host = step.copied("Pageable")
    pinned = sum(step.copied("Pinned"))
    copied = to_device + to_host
    if not copied:
        return None
    share = step.share("copies") * copied / (copied + pinned)
    if share < _COPIES.value:
        return None
    ratio = _pageable_over_pinned(step)
    evidence = [profiled("copies of pageable memory", share)]
    if ratio is not None:
        evidence.append(measured("rate of pageable copies over pinned ones", ratio))
    return Match({"share": share}, share, tuple(evidence), takes=("copies",))


def _pageable_over_pinned(step: Step) -> float | None:
    """Return pageable over pinned bandwidth of the largest copies to the device, as measured."""
    rates: dict[str, float] = {}
    for each in step.report.ceilings.ceilings if step.report.ceilings else ():
        memory, _, size = each.kind.partition(" ")
        if each.roof == HOST_TO_DEVICE and size and not size.startswith("on the"):
            rates[memory] = max(rates.get(memory, 0.0), each.median)
    if not rates.get("pinned") or not rates.get("pageable"):
        return None
    return rates["pageable"] / rates["pinned"]


def _copies_in_turn(step: Step) -> RuleResult:
    if not step.on_gpu:
        return None
    if not step.recorded:
        return _NO_PROFILE
    goodput = step.variant.goodput
    hidden = (goodput.hidden or 0.0) if goodput else 0.0
    to_device, to_host = step.copied("Pinned")
    copied = to_device + to_host
    pageable = sum(step.copied("Pageable"))
    computing = step.share(*COMPUTED)
    if not copied or hidden >= _HIDDEN.value:
        return None
    share = step.share("copies") * copied / (copied + pageable)
    if share < _COPIES.value:
        return None
    # the two directions and the kernels each have an engine of their own
    longest = max(to_device, to_host, computing)
    if share + computing - longest < _COPIES.value:
        return None
    return Match(
        {"share": share, "hidden": hidden},
        share,
        (
            profiled("copies without a kernel beside", share),
            profiled("of copies that is hidden", hidden),
            profiled("computing", computing),
        ),
        takes=("copies",),
    )


def _touches_fresh_memory(step: Step) -> RuleResult:
    """By the page faults of a step, and what one costs here, near a roof or not."""
    faults = step.faults
    if faults is None:
        return None
    share = step.cause_value("share") if step.cause == "page_faults_take_the_time" else None
    if share is None:
        cost = step.ceiling(PAGE_FAULT, "")
        if cost is None or not step.step_s:
            return None
        # a busy machine makes each dearer
        fault_s = cost.best if cost.median > UNSTEADY * cost.best else cost.median
        share = faults * fault_s / step.step_s
    lines = _fresh_lines(step)
    if lines and lines <= explained_lines(step):
        return None
    high = min(share, 1.0)
    if lines:
        # the pages are touched by what is called there
        high = min(high, step.share_of_rows(row for row in step.operations if row.line in lines))
    if high < _FAULTS.value:
        return _few_faults(step, faults)
    evidence = (measured("page faults", faults, "a step"), measured("share", min(share, 1.0)))
    # of all of them, as its limit says; those of the lines below may be fewer
    values: dict[str, Value] = {"share": min(share, 1.0), "calls": None, "faults": faults}
    return Match(values, high, evidence, takes=("alloc", *COMPUTED))


def _few_faults(step: Step, faults: float) -> RuleResult:
    """Return that memory was taken anew without page faults that would say what it costs."""
    fresh = sum(max(0.0, row.memory_bytes or 0.0) for row in step.operations if row.line)
    if fresh < _LARGE_BYTES or faults * _PAGE_BYTES > _FRESH_SHARE * fresh:
        return None
    return NotMeasured("what fresh memory costs here: huge pages, or an allocator that keeps it")


def _allocates(step: Step) -> RuleResult:
    if not step.on_gpu:
        return _touches_fresh_memory(step)
    if not step.recorded:
        return _NO_PROFILE
    share = step.share("alloc")
    calls = step.facts.allocations if step.facts else None
    if share < _ALLOCATES.value or (calls is not None and calls < 1):
        return None
    evidence = (profiled("alloc", share), profiled("calls", calls or 0.0, "a step"))
    values = {"share": share, "calls": calls, "faults": None}
    return Match(values, share, evidence, takes=LAUNCHED)


def _fresh_lines(step: Step) -> set[str]:
    """Lines that allocate most of what a step allocates; empty where that is not known."""
    fresh: dict[str, float] = defaultdict(float)
    for row in step.operations:
        if row.line and row.memory_bytes is not None:
            fresh[row.line] += max(0.0, row.memory_bytes)
    total = sum(fresh.values())
    return {line for line, amount in fresh.items() if amount >= _FRESH_SHARE * total > 0}


def _compiles(step: Step) -> RuleResult:
    facts = step.facts
    if facts is None:
        return None if step.recorded else _NO_PROFILE
    breaks = facts.graph_breaks
    if breaks is None:
        return None
    share = min(1.0, facts.compile_s / facts.step_s) if facts.step_s else 0.0
    values = {
        "share": share,
        "compilations": facts.compilations,
        "breaks": breaks,
        "regions": facts.compiled_regions,
    }
    if facts.compilations > 0:
        evidence = (
            measured("compilations", facts.compilations, "a step"),
            measured("compiling", share),
        )
        return Match(values, share, evidence, takes=(*COMPUTED, *LAUNCHED))
    if not breaks or facts.compiled_regions <= 1:
        return None
    idle = step.idle if step.on_gpu else step.share("other") + _wrapper_share(step)
    numbers = (
        measured("graph breaks", breaks, "in all"),
        profiled("compiled pieces", facts.compiled_regions, "a step"),
        profiled("outside of operations", idle),
    )
    return Match(values, idle, numbers, takes=LAUNCHED)


_WRAPPER = re.compile(r"Torch-Compiled Region|TorchDynamo Cache Lookup|Pregraph bytecode")


def _wrapper_share(step: Step) -> float:
    """The share of a CPU's step in what calls compiled code, without what that calls."""
    rows = (row for row in step.operations if _WRAPPER.search(row.name))
    return min(1.0, step.share_of_rows(rows))


def _updates(step: Step) -> RuleResult:
    if not step.recorded:
        return _NO_PROFILE
    facts = step.facts
    if facts is None:
        return _NO_FACTS
    if not facts.optimizer_s or not facts.step_s:
        return None
    if not facts.parameters or not _is_one_optimizer(facts):
        return None
    if step.share("not running", "preempted") >= _DISTURBED:
        return None  # where the thread was kept from its CPU is by chance
    share = min(1.0, facts.optimizer_s / facts.step_s)
    kernels = facts.optimizer_kernels
    if share < _OPTIMIZES.value or kernels <= _KERNELS.value * facts.parameters:
        return None
    values = {"share": share, "kernels": kernels, "parameters": facts.parameters}
    evidence = (
        profiled("optimizer", share),
        profiled("its kernels", kernels, "a step"),
        measured("parameters", facts.parameters, "tensors"),
    )
    return Match(values, share, evidence, takes=(*LAUNCHED, *COMPUTED))


_HAS_A_FLAG = {"ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam"}
_HAS_A_FLAG |= {"RAdam", "RMSprop", "Rprop", "SGD"}
"""Classes of torch.optim that can be told to update many tensors at once."""


def _is_one_optimizer(facts: WindowFacts) -> bool:
    """Return whether its kernels are its own: of one that steps once a step, without a closure."""
    calls = facts.optimizers
    if facts.optimizer_computes or sum(calls.values()) > _ONCE or len(calls) > 1:
        return False
    return calls.keys() <= _HAS_A_FLAG


def _held_back(step: Step) -> RuleResult:
    solo = step.variant.solo_run
    if not step.on_gpu and solo is None:
        return None
    if solo is None or solo.slowed is None:
        return NotMeasured("clocks and temperature of a solo run", "--telemetry on --profile all")
    clock = temperature_c = None
    telemetry = step.report.telemetry
    highest = (telemetry.limits.get("sm_clock") if telemetry else None) or 0.0
    if highest and "sm_clock" in step.counters:
        clock = step.counters["sm_clock"] / highest
        temperature_c = step.counters.get("temperature")
    hot = temperature_c is not None and temperature_c >= _HOT.value
    below = hot and clock is not None and clock <= 1 - _BELOW_CLOCK.value
    if solo.slowed < _SLOWED.value and not below:
        return None
    values = {"slowed": solo.slowed, "clock": clock, "temperature_c": temperature_c}
    evidence = [by_telemetry("readings with a slowdown", solo.slowed)]
    if clock is not None:
        evidence.append(by_telemetry("clock over the highest", clock))
    return Match(values, solo.slowed, tuple(evidence), takes=COMPUTED)


_WAITING_FOR_RANKS = ("communication", "waiting", "sync", *COMPUTED)


def _rank_is_late(step: Step) -> RuleResult:
    job = step.ranks
    if job is None or not job.ranks:
        return NotMeasured("arrival times of several ranks: this run has one process")
    late = job.late
    if late is None:
        return None
    share = min(late.share, 1.0)
    values = {"rank": late.rank, "share": share}
    evidence = (
        measured("later than the median of the others", share),
        measured("last to come, of the steps", late.last),
    )
    return Match(values, share, evidence, takes=_WAITING_FOR_RANKS)


RULES = (
    Rule(
        findings.data_wait,
        _waits_for_data,
        "find what a batch costs: its samples, their collating, or workers that start anew with an "
        "epoch",
        (
            "# samples: cheaper ones, or num_workers up to the free cores",
            "# collating: one array for the batch, not a list of numbers",
            "# all of it at the first batch of an epoch: persistent_workers=True",
        ),
        "input_pipeline",
        {"share": _WAITS_FOR_DATA},
    ),
    Rule(
        findings.many_small_operations,
        _starts_operations,
        "start fewer, larger operations: batch them, compile the step, or replay a CUDA graph",
        (
            "step = torch.compile(step)  # fuses operations",
            "step = torch.compile(step, mode='reduce-overhead')  # CUDA graph",
            "# or one call on a batch, where a loop makes many",
        ),
        "small_kernels",
        {
            "idle": _IDLE,
            "of the idle time": _IDLE_SHARE,
            "for one operation": _LAUNCH_S,
            "operations": _SEVERAL,
        },
        fallback=True,
    ),
    Rule(
        findings.waits_empty_queue,
        _empties_queue,
        "keep results on the device, and read them once in many steps",
        (
            "losses.append(loss.detach())  # no .item(), no print",
            "if number % 100 == 0:",
            "    log(torch.stack(losses).mean().item())",
        ),
        "sync_every_step",
        {"share": _SYNCHRONISES},
    ),
    Rule(
        findings.pageable_copies,
        _copies_pageable,
        "copy from pinned memory, and do not wait for the copy",
        (
            "host = host.pin_memory()  # once, not in each step",
            "device.copy_(host, non_blocking=True)",
            "DataLoader(data, pin_memory=True)",
        ),
        "pinned_memory",
        {"share": _COPIES},
    ),
    Rule(
        findings.copies_not_overlapped,
        _copies_in_turn,
        "copy the next batch on a second stream while this one computes",
        (
            "with torch.cuda.stream(copies):",
            "    following = host.to('cuda', non_blocking=True)",
            "torch.cuda.current_stream().wait_stream(copies)",
        ),
        "double_buffering",
        {"share": _COPIES, "hidden": _HIDDEN},
    ),
    Rule(
        findings.allocates_each_step,
        _allocates,
        "allocate once, and write into the same memory in each step",
        (
            "out = torch.empty_like(x)  # before the loop",
            "torch.mul(x, y, out=out)",
            "# and no torch.cuda.empty_cache() in the loop",
        ),
        "preallocation",
        {"share": _ALLOCATES, "page faults": _FAULTS},
    ),
    Rule(
        findings.compiles_in_steps,
        _compiles,
        "keep shapes and Python values stable, and conditions on tensors out of compiled code",
        (
            "torch.compile(step, dynamic=True)  # lengths differ",
            "x = torch.where(x.max() > 1, x / 2, x)  # no `if` on a tensor",
            "# TORCH_LOGS=recompiles,graph_breaks says where",
        ),
        "graph_breaks",
        {"compilations": Threshold(0.0, "torch's own counters: none in a steady step")},
    ),
    Rule(
        findings.clocks_held_back,
        _held_back,
        "cool the device, or lower its clock until it holds",
        (
            "nvidia-smi -q -d PERFORMANCE,TEMPERATURE",
            "nvidia-smi --lock-gpu-clocks=0,1500",
            "nvidia-smi --query-gpu=clocks_event_reasons.active --format=csv",
        ),
        "utilization",
        {"slowed": _SLOWED, "clock": _BELOW_CLOCK, "temperature_c": _HOT},
    ),
    Rule(
        findings.optimizer_not_fused,
        _updates,
        "update all parameters in a few kernels",
        (
            "torch.optim.AdamW(model.parameters(), fused=True)",
            "# fused: Adam, AdamW, SGD and Adagrad; others have",
            "torch.optim.RMSprop(model.parameters(), foreach=True)",
        ),
        "optimizer_step",
        {"share": _OPTIMIZES, "kernels for a parameter": _KERNELS},
    ),
    Rule(
        findings.rank_late,
        _rank_is_late,
        "find the part of its step that takes longer than the others', in the table of ranks",
        (
            "# loader, forward, backward: more work, or a slower device",
            "# GC: gc.freeze() before the loop, and gc.collect() between steps",
            "# other: what it does outside of them; no CPU: what else runs there",
        ),
        "late_rank",
        {
            "late": Threshold(0.05, "TraceML: 10 and 20 %"),
            "last": Threshold(0.6, "gpulab: in most collectives"),
        },
    ),
)
