"""Run files of version 1, written before the first release: the same events by their old names.

Sentences that stood in them stay sentences: they become findings with the code `text`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpulab.protocol.events import AnyEvent
from gpulab.protocol.wire import TAGS, UNREADABLE

_STAGES = {"soak": "solo run"}
_TYPES = {"Soaked": "SoloRun"}
_FIELDS = {
    "CeilingsMeasured": {"whole": "complete"},
    "Phases": {"ran": "running_s"},
    "Profiled": {"same": "repeatable"},
    "TelemetryStarted": {"why": "no_gpu_reason"},
    "OutOfMemory": {"message": "cause"},
    "VariantFailed": {"message": "cause"},
    "Noticed": {"text": "finding"},
}
_SENTENCES = frozenset({"no_gpu_reason", "cause", "finding"})
_REASONS = frozenset({"Checked", "VariantRefused", "VariantSkipped", "TelemetryLost"})
"""Events whose `reason` was a sentence; that of `Stopped` always was a word."""
_SUBJECT = ("scenario", "path", "source_sha256", "title")
_OF_SCENARIO = {"topic": "topic", "claim": "claim", "same": "no_effect_reason", "params": "params", "env": "env"}
_TIMED = ("device", "threads", "seed", "time_s", "clock", "cache", "smoke", "quick", "stop_early", "ceilings")
_OF_MEASURE = {
    "roof": "roof",
    "per": "per",
    "ladder": "ladder",
    "alone": "exclusive",
    "grows": "increasing_memory",
}


def decode_version_1(line: bytes) -> AnyEvent | None:
    """One event of version 1, or None where its type is not known. ValueError where the line is no event."""
    try:
        document = msgspec.json.decode(line, type=dict[str, Any])
        tag = _TYPES.get(document.get("type", ""), document.get("type"))
        if not isinstance(tag, str):
            raise ValueError("not an event: it has no type")
        if tag not in TAGS:
            return None
        return msgspec.convert(_upgraded(tag, document), AnyEvent)  # type: ignore[no-any-return]
    except (*UNREADABLE, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"not an event: {error}") from None


def _upgraded(tag: str, document: dict[str, Any]) -> dict[str, Any]:
    names = _FIELDS.get(tag, {})
    event = {names.get(name, name): value for name, value in document.items()} | {"type": tag}
    for name in _SENTENCES & event.keys():
        event[name] = _finding(event[name])
    if tag in _REASONS and "reason" in event:
        event["reason"] = _finding(event["reason"])
    if "problems" in event:
        event["problems"] = [_finding(text) for text in event["problems"]]
    if "stage" in event:
        event["stage"] = _STAGES.get(event["stage"], event["stage"])
    if tag == "StageStarted" and event["stage"] == "ceilings":
        event["detail"] = event.pop("variant", None)
    if tag == "CeilingsMeasured":
        event["ceilings"] = [_ceiling(ceiling) for ceiling in event["ceilings"]]
    if tag == "RunStarted":
        event["request"] = _request(event["request"])
    return event


def _finding(text: str | None) -> dict[str, Any] | None:
    return None if text is None else {"code": "text", "values": {"text": text}}


def _ceiling(ceiling: dict[str, Any]) -> dict[str, Any]:
    method = ceiling.pop("how", "")
    return ceiling | {"method": _finding(method) if method else None}


def _request(flat: dict[str, Any]) -> dict[str, Any]:
    """The flat request of version 1 as a job with its subject."""
    variants = [variant | {"missing": _finding(variant.get("missing"))} for variant in flat["variants"]]
    subject = {name: flat[name] for name in _SUBJECT if name in flat} | {"variants": variants}
    job = {name: flat[name] for name in _TIMED if name in flat}
    job["solo_runs"] = flat.get("telemetry", "on") != "off"
    if flat.get("ceilings") == "all":
        job = {"job": "calibrate"} | {name: job[name] for name in ("device", "threads", "seed") if name in job}
    elif flat.get("functions"):
        job |= {"job": "time functions", "subject": subject | {"kind": "functions"}}
    else:
        subject |= {new: flat[old] for old, new in _OF_SCENARIO.items() if old in flat} | {"kind": "scenario"}
        job |= {new: flat[old] for old, new in _OF_MEASURE.items() if old in flat}
        job |= {"job": "measure", "subject": subject}
    profile = {"trace": flat.get("trace"), "memory": flat.get("memory")} if flat.get("profile") else None
    request = {"job": job, "telemetry": flat.get("telemetry", "on"), "timeout_s": flat.get("timeout_s")}
    return request | {"profile": profile}
