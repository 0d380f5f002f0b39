"""What every form of a run says in words: the answer, on what and when, and how to run it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpulab.core.jobs import FunctionFile, Program, RunRequest, subject_of
from gpulab.core.units import byte_count, interval, plus_minus, seconds, times
from gpulab.draw.styles import OUTCOME_STYLES, STYLES, with_star
from gpulab.features import part
from gpulab.options import Options
from gpulab.report.build import CALIBRATION
from gpulab.report.live import LiveDetail, LiveReport
from gpulab.report.report import RunReport
from gpulab.show.view import outcome_words, short_run
from gpulab.stats.verdicts import shown


def title(report: RunReport) -> str:
    if report.scenario == CALIBRATION and report.device:
        return f"Ceilings of {report.device.name}"
    return report.title or report.scenario


def subtitle(report: RunReport) -> str:
    """On what, with which parameters, when."""
    facts = [report.device.name] if report.device else []
    facts += [f"{name}={value}" for name, value in report.params.items()]
    facts += [report.at[:10], *short_run(report)]
    return " · ".join(fact for fact in facts if fact)


@dataclass(frozen=True)
class Answer:
    """The answer of a run, such as 36.4x faster, with its style; of which comparison; and why that
    is the number that counts.
    """

    short: str
    style: str
    words: str = ""
    why: str = ""


def answer(report: RunReport) -> Answer:
    """Return the answer of the comparison that matters most; without one, of the run."""
    comparison = LiveReport(report, LiveDetail()).main_comparison if report.compares else None
    if report.timed and not report.has_speedups and not report.smoke:
        variant, time = report.timed[0]
        spread = plus_minus(time)
        words = f"{variant.name}, per {report.per} {spread}"
        return Answer(seconds(time.value), "", words.rstrip())
    if comparison is None or comparison.speedup is None:
        return Answer(outcome_words(report), OUTCOME_STYLES[report.outcome])
    words = f"{comparison.variant} against {comparison.against}"
    sustained = comparison.sustained
    if sustained and sustained.headline_reason:
        speedup, ends = times(sustained.speedup), interval(sustained.speedup)
        words += f", sustained; interleaved {times(comparison.speedup)}"
    else:
        speedup, ends = times(comparison.speedup), interval(comparison.speedup)
    if ends:
        words += f" · {report.method.confidence:.0%} interval {ends}"
    verdict = with_star(shown(comparison).words, quick=report.quick)
    _, why = part("alone.view:headline", report) or ("", "")
    return Answer(f"{speedup} {verdict}", STYLES[comparison.verdict], words, why)


def source_of(request: RunRequest | None) -> str:
    """The text of the file that ran; empty where it was not kept."""
    subject = subject_of(request.job) if request else None
    return subject.source if subject else ""


def facts(report: RunReport) -> Iterator[tuple[str, str]]:
    device = report.device
    if device:
        yield "device", device.name
        if device.capability:
            yield "compute capability", str(device.capability)
        yield "memory", byte_count(device.memory_bytes) if device.memory_bytes else ""
        yield "last-level cache", byte_count(device.l2_bytes) if device.l2_bytes else ""
        yield "CPU threads", str(device.threads)
    for name, version in report.environment.items():
        yield name, version or ""
    yield "measured at", f"{report.at[:19].replace('T', ' ')} UTC" if report.at else ""
    yield "took", seconds(report.progress.elapsed_s) if report.progress.elapsed_s else ""
    yield "seed", "" if report.seed is None else str(report.seed)
    yield "source", f"SHA-256 {report.source_sha256}" if report.source_sha256 else ""
    yield "run file", Path(report.run_file).name


def command(request: RunRequest, report: RunReport) -> str:
    """Return the command that measures the same again."""
    subject = subject_of(request.job)
    if isinstance(subject, Program):
        return f"gpulab --run -- {shlex.join(subject.argv)}"
    words = ["gpulab", "--run", report.scenario]
    if subject is None:
        words = ["gpulab", "--calibrate"]
    if isinstance(subject, FunctionFile):
        words[-1] = f"{Path(subject.path).name}:{report.scenario.partition(':')[2]}"
    device = request.job.device
    options = Options(
        device=None if device == "cuda:0" else device,
        chosen={name: str(value) for name, value in report.params.items()},
        threads=request.job.threads,
        seed=report.seed,
        smoke=report.smoke,
        quick=report.quick,
    )
    return shlex.join([*words, *options.words()])
