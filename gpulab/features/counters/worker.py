"""Has ncu count the kernels of a step of variants, after everything was measured: each kernel is
run again for every few counters, with empty caches.

All variants are steps of one process, and kernels of one report: to start ncu, torch and a build
takes 9 seconds, to count a kernel less than one. Their NVTX ranges tell them apart.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import NoReturn

import msgspec

from gpulab.core.counted_steps import COMMAND, StepsJob, StepsState
from gpulab.core.events import Event, FindingMade, StageStarted
from gpulab.core.findings import Finding
from gpulab.core.jobs import CountersOptions, Measure, TimeFunctions
from gpulab.core.statuses import Stage
from gpulab.core.units import plural
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.channel import Channel
from gpulab.features.counters.events import KernelsCounted
from gpulab.features.counters.findings import counters_kept, not_counted, nothing_counted
from gpulab.features.counters.metrics import COUNTED, CountedKernel, grouped, short_text, together
from gpulab.features.counters.tables import kernels_of
from gpulab.features.counters.tool import why_not
from gpulab.proc.spawn import DEVNULL, PIPE, HangsError, capture, spawn
from gpulab.proc.tree import exit_like, kill_orphans

_LIMIT_S, _READ_LIMIT_S = 300.0, 60.0
"""For each variant; for ncu to read its report."""
_MOST_KERNELS = 50
"""Of a step, in the event; all of them are in ncu's report."""
_OF_ALL = {"nvgpuctrperm": "not_allowed", "unavailable": "in_use", "library": "not_loaded"}
"""What is in ncu's errors where no variant can be counted."""
_NO_KERNEL = "ncu saw no kernel in its step; copies, memsets and what the CPU computes are none"
_WAYS = (
    *("--clock-control", "none", "--profile-from-start", "off", "--nvtx"),
    *("--target-processes", "application-only"),  # a compiler that the steps start has no kernels
    *("--metrics", ",".join(COUNTED), "--export"),
)


def count(job: Measure | TimeFunctions, measured: ProcessResult, channel: Channel) -> None:
    """Report what ncu counts of the baseline and of what is asked for, of those that were measured,
    or why it counts nothing.
    """
    asked = job.counters or CountersOptions()
    signal.signal(signal.SIGTERM, _stop)
    there = {candidate.variant for candidate in measured.candidates}
    names = [info.name for info in job.subject.variants if info.name in there]
    names = [name for name in names if asked.variant in ("", name) or name == names[0]]
    if not names:
        return
    steps = StepsJob(job=job, variants=names, choices=measured.choices)
    for found in _counted(steps, f"{asked.report}.ncu-rep"):
        if isinstance(found, StageStarted):
            channel.position.move(Stage.PROFILE, found.variant)
        event = FindingMade(finding=found, explains=True) if isinstance(found, Finding) else found
        channel.emit(event)
        channel.flush()


def _stop(*_: object) -> NoReturn:
    """End ncu, which has a session of its own, with this process: the run is stopped."""
    kill_orphans()
    exit_like(signal.SIGTERM)


def _counted(steps: StepsJob, report: str) -> Iterator[Event | Finding]:
    """Yield what ncu counts of each variant, or why it does not, and where its report is."""
    if reason := why_not(steps.job.device, steps.job.ranks):
        yield reason
        return
    states = {name: StepsState(variant=name, state="ready") for name in steps.variants}
    errors: list[str] = []
    kernels: list[CountedKernel] = []
    detail = f"counting kernels of {plural(len(states), 'variant')} with ncu"
    yield StageStarted(stage=Stage.PROFILE, variant=steps.variants[0], detail=detail)
    try:
        for line in _printed(steps, report, errors):
            with suppress(msgspec.MsgspecError):
                state = msgspec.json.decode(line, type=StepsState)
                states[state.variant] = state
                if state.state == "ready":
                    yield StageStarted(stage=Stage.PROFILE, variant=state.variant, detail=detail)
            if line.startswith(b"==ERROR=="):
                errors.append(line[9:].decode(errors="replace"))
        ways = ("--csv", "--page", "raw", "--print-units", "base")
        table = capture(["ncu", "--import", report, *ways], _READ_LIMIT_S)
        kernels = kernels_of(table.output.decode(errors="replace"))
    except (OSError, HangsError) as error:
        errors.append(str(error))
    except ValueError:  # there is no kernel
        pass
    said = short_text(" ".join(errors), 300)
    reasons = [each for phrase, each in _OF_ALL.items() if phrase in said.lower()]
    if reasons and not kernels:
        yield nothing_counted(reason=reasons[0])
        return
    for name, state in states.items():
        own = grouped(kernel for kernel in kernels if kernel.range == name)
        if own and state.state == "done":
            kept, whole = own[:_MOST_KERNELS], together(own)
            yield KernelsCounted(variant=name, kernels=kept, together=whole, report=report)
        elif state.state == "failed":
            yield not_counted(name, message=short_text(f"its step failed: {state.message}", 300))
        elif state.state == "ready" or (said and not kernels):
            yield not_counted(name, message=f"ncu: {said or 'it ended early'}")
        else:
            yield not_counted(name, message=_NO_KERNEL)
    if kernels:
        yield counters_kept(file=report)


def _printed(steps: StepsJob, report: str, errors: list[str]) -> Iterator[bytes]:
    """Run the steps in ncu, and yield the lines that both print. OSError."""
    limit_s = _LIMIT_S * len(steps.variants)

    def stop() -> None:
        errors.append(f"it did not end within {limit_s:g} s")
        kill_orphans()

    Path(report).unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile(dir=steps.job.folder) as asked:
        asked.write(msgspec.json.encode(steps))
        asked.flush()
        # where ncu would replace %
        command = ["ncu", *_WAYS, report.replace("%", "%%"), *COMMAND, asked.name]
        process = spawn(command, stdin=DEVNULL, stdout=PIPE, stderr=-2, start_new_session=True)
        end = Timer(limit_s, stop)
        end.start()
        yield from process.stdout or ()
        if (code := process.wait()) and not errors:
            errors.append(f"it ended with code {code}")
        end.cancel()
        kill_orphans()
