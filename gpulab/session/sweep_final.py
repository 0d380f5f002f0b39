"""The final of a sweep: the points that may be the best, as contenders of one run that compares them in turn."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpulab.protocol.jobs import Measure, RunRequest, VariantInfo
from gpulab.protocol.statuses import CeilingChoice, Per
from gpulab.report.sweeps import Finalists, contenders_of


def final_request(points: Sequence[RunRequest], parameter: str, finalists: Finalists) -> RunRequest | None:
    """The request of the final, from those of the points; None where there is nothing to tell apart.

    Nor is there one of smoke runs, which nobody draws conclusions from.
    """
    jobs = [point.job for point in points if isinstance(point.job, Measure)]
    if not jobs or jobs[0].smoke or not finalists:
        return None
    job = jobs[0]
    infos = {info.name: info for info in job.subject.variants}
    first: dict[str, str] = {}
    variants: list[VariantInfo] = []
    for contender in contenders_of(parameter, finalists):
        against = first.get(contender.variant)
        first.setdefault(contender.variant, contender.name)
        variants.append(
            replace(
                infos[contender.variant],
                name=contender.name,
                function=contender.variant,
                params={parameter: contender.value},
                against=against,
                claim=None,
            )
        )
    subject = replace(
        job.subject,
        variants=tuple(variants),
        params={**job.subject.params, **variants[0].params},
        claim="",
        no_effect_reason="",
    )
    final = replace(
        job,
        subject=subject,
        per=Per.ITEM,
        roof=None,
        ladder=False,
        increasing_memory=False,
        solo_runs=False,
        ceilings=CeilingChoice.NONE,
        required_speedup=None,
    )
    return replace(points[0], job=final, profile=None)
