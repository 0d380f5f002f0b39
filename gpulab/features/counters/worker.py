"""Has ncu count the kernels of a step of variants, after everything was measured: each kernel is
run again for every few counters, with empty caches.

All variants are steps of one process, and kernels of one report: to start ncu, torch and a build
takes 9 seconds, to count a kernel less than one. Their NVTX ranges tell them apart.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from gpulab.core.counted_steps import COMMAND, StepsJob, StepsState
from gpulab.core.events import FindingMade, StageStarted
from gpulab.core.findings import Finding
from gpulab.core.jobs import CountersOptions, Measure, TimeFunctions
from gpulab.core.statuses import Stage
from gpulab.core.units import plural
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.channel import Channel
from gpulab.features.counters.events import KernelsCounted
from gpulab.features.counters.findings import counters_kept, not_counted, nothing_counted
from gpulab.features.counters.metrics import COUNTED, grouped, short_text, together
from gpulab.features.counters.tables import kernels_of
from gpulab.proc.spawn import DEVNULL, PIPE, HangsError, TimeoutExpired, capture, spawn
from gpulab.proc.tree import exit_like, kill_orphans

_SILENT_S, _END_S = 300.0, 60.0
"""For a variant, whose kernels run again and again; for ncu to write a report, or to read it."""
_MOST_KERNELS = 50
"""Of a step, in the event; all of them are in ncu's report."""
_OF_ALL = {
    "err_nvgpuctrperm": "not_allowed",
    "driver resource was unavailable": "in_use",
    "library": "not_loaded",
}
"""What is in ncu's errors where no variant can be counted."""
_PRINTED = ("--csv", "--page", "raw", "--print-units", "base")
_NO_KERNEL = "its step has no kernel; copies, memsets and what the CPU computes are none"


def count(job: Measure | TimeFunctions, measured: ProcessResult, channel: Channel) -> None:
    """Report what ncu counts of the baseline and of what is asked for, of those that were measured,
    or why it counts nothing.
    """
    asked = job.counters or CountersOptions()
    signal.signal(signal.SIGTERM, _stop)
    ncu = shutil.which("ncu") or ""
    reasons = {"on_cpu": job.device == "cpu", "ranks": job.ranks > 1, "ncu_missing": not ncu}
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    if reason:
        channel.emit(FindingMade(finding=nothing_counted(reason=reason), explains=True))
        return
    there = {candidate.variant for candidate in measured.candidates}
    names = [info.name for info in job.subject.variants if info.name in there]
    names = [name for name in names if asked.variant in ("", name) or name == names[0]]
    steps = StepsJob(job=job, variants=names, choices=measured.choices)
    for found in _counted(ncu, steps, Path(f"{asked.report}.ncu-rep"), channel):
        is_event = isinstance(found, KernelsCounted)
        channel.emit(found if is_event else FindingMade(finding=found, explains=True))


def _stop(*_: object) -> NoReturn:
    """End ncu, which has a session of its own, with this process: the run is stopped."""
    kill_orphans()
    exit_like(signal.SIGTERM)


def _counted(
    ncu: str, steps: StepsJob, report: Path, channel: Channel
) -> Iterator[KernelsCounted | Finding]:
    """Yield what ncu counts of each variant, or why it does not, and where its report is."""
    states: dict[str, StepsState] = {}
    errors, kernels = [], []
    _say(channel, steps.variants[0], len(steps.variants))
    try:
        report.unlink(missing_ok=True)
        for line in _printed(ncu, steps, report):
            if line.startswith(b"==ERROR=="):
                errors.append(line.removeprefix(b"==ERROR==").decode(errors="replace").strip())
            with suppress(msgspec.MsgspecError):
                state = msgspec.json.decode(line, type=StepsState)
                states[state.variant] = state
                if state.state == "ready":
                    _say(channel, state.variant, len(steps.variants))
        table = capture([ncu, "--import", str(report), *_PRINTED], _END_S)
        kernels = kernels_of(table.output.decode(errors="replace"))
    except (OSError, HangsError) as error:
        errors.append(str(error))
    except ValueError:  # it has no kernel
        pass
    said = short_text(" ".join(errors), 300)
    of_all = [reason for phrase, reason in _OF_ALL.items() if phrase in said.lower()]
    if of_all and not kernels:
        yield nothing_counted(reason=of_all[0])
        return
    for name in steps.variants:
        state = states.get(name, StepsState(variant=name, state="ready"))
        own = grouped(kernel for kernel in kernels if kernel.range == name)
        if own and state.state == "done":
            kept, whole = own[:_MOST_KERNELS], together(own)
            yield KernelsCounted(variant=name, kernels=kept, together=whole, report=str(report))
        elif state.state == "failed":
            yield not_counted(name, message=short_text(f"its step failed: {state.message}", 300))
        elif said or state.state != "done":
            yield not_counted(name, message=f"ncu: {said or 'it ended early'}")
        else:
            yield not_counted(name, message=_NO_KERNEL)
    if kernels:
        yield counters_kept(file=str(report))


def _say(channel: Channel, variant: str, count: int) -> None:
    channel.position.move(Stage.PROFILE, variant)
    detail = f"counting kernels of {plural(count, 'variant')} with ncu"
    channel.emit(StageStarted(stage=Stage.PROFILE, variant=variant, detail=detail))
    channel.flush()


def _printed(ncu: str, steps: StepsJob, report: Path) -> Iterator[bytes]:
    """Run the steps in ncu, and yield the lines that both print. After a long silence ncu is told
    to end, at which it writes what it has.
    """
    export = str(report).replace("%", "%%")  # which ncu would replace
    ways = ["--clock-control", "none", "--profile-from-start", "off", "--nvtx"]
    # a compiler that the steps start makes no kernels
    ways += ["--target-processes", "application-only"]
    ways += ["--metrics", ",".join(COUNTED), "--export", export]
    with tempfile.NamedTemporaryFile(dir=steps.job.folder) as asked:
        asked.write(msgspec.json.encode(steps))
        asked.flush()
        command = [ncu, *ways, *COMMAND, asked.name]
        process = spawn(command, stdin=DEVNULL, stdout=PIPE, stderr=-2, start_new_session=True)
        output = process.stdout.fileno()  # type: ignore[union-attr]
        partial, silent_s = b"", 0.0
        while silent_s < _SILENT_S:
            ready = select.select([output], [], [], 0.5)[0]
            data = os.read(output, 1 << 16) if ready else b""
            if not data and (ready or process.poll() is not None):
                break  # what it started may keep the pipe
            silent_s = 0.0 if data else silent_s + 0.5
            *lines, partial = (partial + data).split(b"\n")
            yield from lines
        else:
            yield f"==ERROR== nothing came from it for {_SILENT_S:g} s".encode()
            process.send_signal(signal.SIGINT)
        with suppress(TimeoutExpired):
            process.wait(_END_S)
        kill_orphans()
