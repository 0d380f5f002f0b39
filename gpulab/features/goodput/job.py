"""What a whole job of a variant would spend, from process start to its last step: job-level
goodput.

Goodput = productive time / total time since start, badput by cause, as for jobs on clusters: here
of a job that nothing interrupts. Every part was measured in the run: the start and the file in its
first process, the build and the first step of each variant, its warm-up, and its step. Only the
number of steps is a supposition.
"""

from __future__ import annotations

from math import ceil

from msgspec.structs import replace

from gpulab.core.payloads import USEFUL
from gpulab.core.statuses import Status
from gpulab.features.goodput.result import FromStart, JobGoodput
from gpulab.report.report import RunReport, VariantReport

STEPS = "steps"
"""All of the steady steps, where no profile says what they are made of."""
BEFORE_STEPS = ("interpreter", "imports", "device", "file", "build", "first step", "warm-up")
"""Parts of a job before its steady steps, in their order."""


def from_start(report: RunReport, steps: int | None = None) -> FromStart | None:
    """The jobs of `steps` steps of the baseline; by default of as many as it takes in a minute, to
    two digits.

    Other variants take the steps that make as many items. None where the baseline was not measured.
    """
    measured = [
        variant for variant in report.variants if variant.status == Status.OK and _step_s(variant)
    ]
    if not measured or measured[0].name != report.baseline:
        return None
    baseline = measured[0]
    steps = steps or _rounded(60.0 / _step_s(baseline))
    jobs = [_job(report, variant, baseline, steps) for variant in measured]
    return FromStart(
        steps=steps,
        start_known=bool(report.startup_s),
        jobs=[jobs[0], *(_against(jobs[0], job, steps) for job in jobs[1:])],
    )


def with_from_start(report: RunReport, steps: int | None) -> RunReport:
    """The report with its jobs."""
    return report.with_parts(from_start=from_start(report, steps))


def _job(
    report: RunReport, variant: VariantReport, baseline: VariantReport, steps: int
) -> JobGoodput:
    own_steps = max(1, round(steps * (baseline.items or 1.0) / (variant.items or 1.0)))
    step_s = _step_s(variant)
    shares: dict[str, float] = variant.goodput.partition if variant.goodput else {}
    seconds = {
        **{part: seconds for part, seconds in report.startup_s.items() if part in BEFORE_STEPS},
        "build": variant.build_s or 0.0,
        "first step": max(0.0, (variant.first_step_s or step_s) - step_s),
        "warm-up": variant.warm_up_s or 0.0,
    }
    for part, share in (shares or {STEPS: 1.0}).items():
        seconds[part] = share * step_s * own_steps
    total_s = sum(seconds.values())
    job = JobGoodput(variant=variant.name, steps=own_steps, seconds=seconds, total_s=total_s)
    if not shares:
        return job
    reliable = variant.goodput and variant.goodput.reliable
    return replace(job, goodput=seconds[USEFUL] / total_s, reliable=reliable)


def _against(baseline: JobGoodput, job: JobGoodput, steps: int) -> JobGoodput:
    """With its speedup, and from which step of the baseline on it is ahead."""
    before_s, before_baseline_s = (
        sum(job.seconds.get(part, 0.0) for part in BEFORE_STEPS) for job in (job, baseline)
    )
    gain_s = (baseline.total_s - before_baseline_s - job.total_s + before_s) / steps
    late_s = before_s - before_baseline_s
    ahead_after = None if gain_s <= 0 else max(0, ceil(late_s / gain_s))
    return replace(job, speedup=baseline.total_s / job.total_s, ahead_after=ahead_after)


def _step_s(variant: VariantReport) -> float:
    """A steady step by the host's clock; 0 where none was timed."""
    return variant.clocks_s.get("wall") or (variant.time_s.value if variant.time_s else 0.0)


def _rounded(value: float) -> int:
    """To two digits, and at least 1."""
    return max(1, round(float(f"{value:.1e}")))
