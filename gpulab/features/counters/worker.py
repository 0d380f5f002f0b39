"""Has ncu count the kernels of a step of each variant, after everything was measured: each kernel
is run again for every few counters, with empty caches.

Each variant has a process and a report of its own: one that fails takes nothing from the others.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from pathlib import Path
from typing import NoReturn

import msgspec

from gpulab.core.counted_steps import COMMAND, StepsJob, StepsState
from gpulab.core.events import FindingMade, StageStarted
from gpulab.core.findings import Finding
from gpulab.core.jobs import CountersOptions, Measure, TimeFunctions
from gpulab.core.statuses import Stage
from gpulab.core.text import file_name
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.channel import Channel
from gpulab.features.counters import findings
from gpulab.features.counters.events import KernelsCounted
from gpulab.features.counters.metrics import COUNTED, grouped, short_text, together
from gpulab.features.counters.tables import kernels_of
from gpulab.proc.spawn import Captured, HangsError, capture
from gpulab.proc.tree import exit_like, kill_orphans

_LIMIT_S, _READ_LIMIT_S = 300.0, 60.0
_MOST_KERNELS = 50
"""Of a step, in the event; all of them are in ncu's report."""
_OF_ALL = {
    "err_nvgpuctrperm": findings.counters_not_allowed(),
    "driver resource was unavailable": findings.counters_in_use(),
    "library": findings.ncu_not_loaded(),
}
"""What is in ncu's errors where no variant can be counted."""


def count(job: Measure | TimeFunctions, measured: ProcessResult, channel: Channel) -> None:
    """Report what ncu counts of the baseline and of what is asked for, of those that were measured,
    or why it counts nothing.
    """
    asked = job.counters or CountersOptions()
    signal.signal(signal.SIGTERM, _stop)
    ncu = shutil.which("ncu")
    if job.device == "cpu" or job.ranks > 1 or ncu is None:
        missing = findings.ncu_missing()
        if job.device == "cpu":
            missing = findings.counters_need_cuda()
        elif job.ranks > 1:
            missing = findings.counters_of_ranks()
        channel.emit(FindingMade(finding=missing, explains=True))
        return
    there = {candidate.variant for candidate in measured.candidates}
    names = [info.name for info in job.subject.variants if info.name in there]
    for name in names:
        if asked.variant not in ("", name) and name != names[0]:
            continue
        channel.position.move(Stage.PROFILE, name)
        detail = "counting its kernels with ncu"
        channel.emit(StageStarted(stage=Stage.PROFILE, variant=name, detail=detail))
        channel.flush()
        steps = StepsJob(job=job, variants=[name], choices=measured.choices)
        report = Path(f"{asked.report}-{file_name(name)}.ncu-rep")
        counted = _counted(ncu, steps, report)
        kill_orphans()
        if isinstance(counted, KernelsCounted):
            channel.emit(counted)
            counted = findings.counters_kept(name, file=str(report))
        channel.emit(FindingMade(finding=counted, explains=True))
        if counted.variant is None:  # no other one can be counted either
            return


def _stop(*_: object) -> NoReturn:
    """End ncu, which has a session of its own, with this process: the run is stopped."""
    kill_orphans()
    exit_like(signal.SIGTERM)


def _counted(ncu: str, steps: StepsJob, report: Path) -> KernelsCounted | Finding:
    """What ncu counts of one variant, or why it does not."""
    (variant,) = steps.variants
    try:
        report.unlink(missing_ok=True)
        done = _profile(ncu, steps, report)
        ways = ["--csv", "--page", "raw", "--print-units", "base"]
        printed = capture([ncu, "--import", str(report), *ways], _READ_LIMIT_S).output
    except HangsError:
        return findings.counting_too_long(variant, limit_s=_LIMIT_S)
    except OSError as error:
        return findings.counting_failed(variant, message=short_text(str(error)))
    try:
        kernels = grouped(kernels_of(printed.decode(errors="replace")))
    except ValueError:  # of a report without a kernel too
        return _why_not(variant, done)
    kept, whole = kernels[:_MOST_KERNELS], together(kernels)
    return KernelsCounted(variant=variant, kernels=kept, together=whole, report=str(report))


def _profile(ncu: str, steps: StepsJob, report: Path) -> Captured:
    export = str(report).replace("%", "%%")  # which ncu would replace
    ways = ["--clock-control", "none", "--profile-from-start", "off", "--nvtx"]
    ways += ["--target-processes", "all", "--metrics", ",".join(COUNTED), "--export", export]
    with tempfile.NamedTemporaryFile(dir=steps.job.folder) as asked:
        asked.write(msgspec.json.encode(steps))
        asked.flush()
        return capture([ncu, *ways, *COMMAND, asked.name], _LIMIT_S)


def _why_not(variant: str, done: Captured) -> Finding:
    """Why ncu has no kernel, by what it and the process of the steps said."""
    lines = (done.output + done.errors).decode(errors="replace").splitlines()
    errors = [line.removeprefix("==ERROR==") for line in lines if line.startswith("==ERROR==")]
    said = short_text(" ".join(map(str.strip, errors)), 300)
    for phrase, finding in _OF_ALL.items():
        if phrase in said.lower():
            return finding
    for line in done.output.splitlines():
        if line.startswith(b'{"variant"') and b'"state":"failed"' in line:
            failed = msgspec.json.decode(line, type=StepsState)
            return findings.counted_step_failed(variant, message=short_text(failed.message, 300))
    if not said and any("No kernels were profiled" in line for line in lines):
        return findings.no_kernels_counted(variant)
    said = said or f"it ended with code {done.code}, and without a report that can be read"
    return findings.counting_failed(variant, message=said)
