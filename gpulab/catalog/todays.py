"""The lesson of a recording that ships, as it is told now: its docstring, claim and summaries were
mended since, which changes nothing of what ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from gpulab.catalog.catalog import folders, read_file
from gpulab.catalog.recordings import RECORDINGS, recorded_name
from gpulab.core.events import Event, FindingMade, RunStarted
from gpulab.core.jobs import RunRequest, ScenarioFile, TimedJob, VariantInfo
from gpulab.core.text import one_line
from gpulab.features import present
from gpulab.scenario import Variant


def with_todays_text(path: Path, events: Sequence[Event]) -> list[Event]:
    """The first events of a run file; of a recording that ships with the lesson as it is now."""
    told = [*events]
    replay = present("replay.findings")
    if replay is None or path.parent.parent.resolve() != RECORDINGS.resolve():
        return told
    place, started = next(
        ((place, event) for place, event in enumerate(told) if isinstance(event, RunStarted)),
        (0, None),
    )
    request = _todays_request(started.request, recorded_name(path)) if started else None
    if started is None or request is None:
        return told
    note = FindingMade(t=started.t, finding=replay.text_of_today(), explains=True)
    told[place : place + 1] = [replace(started, request=request), note]
    return told


def _todays_request(request: RunRequest, name: str) -> RunRequest | None:
    """None where the lesson is not there any more, or reads as it did."""
    *_, shipped = folders()
    entry = read_file(shipped / f"{name}.py")
    scenario, job = entry.scenario, request.job
    if scenario is None or not isinstance(job, TimedJob):
        return None
    subject = job.subject
    if not isinstance(subject, ScenarioFile) or subject.source == entry.source:
        return None
    variants = tuple(
        _variant_of_today(info, scenario.variants.get(info.name)) for info in subject.variants
    )
    subject = replace(
        subject,
        title=entry.title,
        lesson=entry.text.lesson,
        claim=one_line(scenario.claim),
        no_effect_reason=one_line(scenario.no_effect_reason),
        variants=variants,
    )
    return replace(request, job=replace(job, subject=subject))


def _variant_of_today(info: VariantInfo, variant: Variant | None) -> VariantInfo:
    if variant is None:
        return replace(info, claim=None)
    claim = variant.claim and one_line(variant.claim)
    return replace(info, summary=one_line(variant.summary), claim=claim)
