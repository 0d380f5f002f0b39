"""From what a user asked for to a `RunRequest`; every mistake in it is a `UsageError` that says what to do."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpulab.model.plain import plain
from gpulab.model.request import RunRequest, VariantInfo
from gpulab.model.scenario import FIRST, Param, Scenario
from gpulab.run.catalog import Entry
from gpulab.run.needs import default_device, first_missing, missing
from gpulab.run.reader import literal

_SMOKE_TIME_S, _QUICK_TIME_S, _TIME_S = 0.5, 1.5, 10.0
_TIMEOUT_S, _TIMEOUT_OF_TIME = 600.0, 20
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")
_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
_LEAST_FOR_CEILINGS_S = 1.0
"""A run shorter than this draws no conclusions about the device, and measuring it would take longer."""
CALIBRATION = "calibration"
UNCHECKED = "a plain function: nothing to compare it with"


class UsageError(ValueError):
    """The command cannot be carried out as it was given."""


@dataclass(frozen=True)
class Settings:
    """What refines a run, whichever face starts it, named as the command line names it. Seconds."""

    device: str | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    time_s: float | None = None
    seed: int = 0
    smoke: bool = False
    timeout_s: float | None = None
    telemetry: str = "on"
    quick: bool = False
    profile: str = "on"
    trace: Path | None = None
    memory: bool = False


def check(settings: Settings) -> None:
    """UsageError where no run can be made with these, whatever the scenario."""
    _device(settings.device)
    cores = len(os.sched_getaffinity(0))
    if settings.threads > cores:
        raise UsageError(f"--threads {settings.threads}: this machine has {cores} cores for it")


def request_for(entry: Entry, settings: Settings, functions: Sequence[str] = ()) -> RunRequest:
    """The request for one file: its scenario, or the named functions of it. UsageError where it makes no sense."""
    device, chosen, smoke = _device(settings.device), settings.chosen, settings.smoke
    time_s = settings.time_s or (_SMOKE_TIME_S if smoke else _QUICK_TIME_S if settings.quick else _TIME_S)
    check(settings)
    common = RunRequest(
        scenario=f"{entry.name}:{','.join(functions)}" if functions else entry.name,
        path=str(entry.path),
        source_sha256=entry.sha256,
        title=entry.title,
        functions=bool(functions),
        variants=_functions(entry, functions),
        device=device,
        threads=settings.threads,
        time_s=time_s,
        seed=settings.seed,
        smoke=smoke,
        ceilings="none" if smoke or time_s < _LEAST_FOR_CEILINGS_S else "needed",
        quick=settings.quick,
        profile=_profile(settings, time_s),
        trace=str(settings.trace.absolute()) if settings.trace else None,
        memory="" if settings.memory else None,
        telemetry="off" if settings.quick and settings.telemetry == "on" else settings.telemetry,
        timeout_s=settings.timeout_s or max(_TIMEOUT_S, _TIMEOUT_OF_TIME * time_s),
    )
    if functions:
        if chosen:
            raise UsageError("--set goes with a scenario: a plain function has no parameters")
        return common
    scenario = entry.scenario
    if scenario is None:
        raise UsageError(f"{entry.path.name} has no Scenario")
    defaults = scenario.resolve(on_cpu=device == "cpu", smoke=smoke, chosen={})
    typed = _params(entry.name, defaults, chosen)
    return msgspec.structs.replace(
        common,
        topic=plain(scenario.topic),
        claim=plain(scenario.claim),
        same=plain(scenario.same),
        roof=scenario.roof,
        per=scenario.per,
        clock=scenario.clock if device != "cpu" else "wall",
        cache=scenario.cache,
        ladder=scenario.ladder,
        alone=scenario.alone,
        grows=scenario.grows,
        variants=_variants(scenario, device),
        params=scenario.resolve(on_cpu=device == "cpu", smoke=smoke, chosen=typed),
        env=scenario.env,
    )


def calibration(settings: Settings) -> RunRequest:
    """The request that measures the ceilings of the device, and nothing else. UsageError."""
    check(settings)
    return RunRequest(
        scenario=CALIBRATION,
        title="what the device can do at best",
        path="",
        source_sha256="",
        variants=(),
        device=_device(settings.device),
        threads=settings.threads,
        seed=settings.seed,
        telemetry=settings.telemetry,
        timeout_s=settings.timeout_s or _TIMEOUT_S,
        ceilings="all",
    )


def _profile(settings: Settings, time_s: float) -> bool:
    """A run shorter than a second asks for its speedup and no more, unless it says so."""
    asked = settings.trace is not None or settings.memory
    return asked or (settings.profile == "on" and not settings.smoke and time_s >= _LEAST_FOR_CEILINGS_S)


def sweep_of(entry: Entry, asked: str) -> tuple[str, list[str]]:
    """The parameter to sweep and its values, from `name=a,b,c`, or `name` or nothing for the scenario's own."""
    scenario = entry.scenario
    if scenario is None:
        raise UsageError(f"--sweep goes with a scenario, and {entry.path.name} has none")
    name, equals, text = asked.partition("=")
    own = "; ".join(f"{one}={','.join(map(str, values))}" for one, values in scenario.sweep.items())
    if not name:
        if len(scenario.sweep) != 1:
            why = f"{entry.name} has several, name one: {own}" if own else f"{entry.name} has none of its own"
            raise UsageError(f"--sweep: {why}; write --sweep name=a,b,c")
        name = next(iter(scenario.sweep))
    if not equals:
        if name not in scenario.sweep:
            raise UsageError(f"--sweep {name}: {entry.name} has no sweep of it; write --sweep {name}=a,b,c")
        return name, [str(value) for value in scenario.sweep[name]]
    values = list(dict.fromkeys(value.strip() for value in text.split(",") if value.strip()))
    if not values:
        raise UsageError(f"--sweep {asked}: it has no values; write --sweep {name}=a,b,c")
    return name, values


def _device(asked: str | None) -> str:
    if asked is None:
        return default_device()
    if not _DEVICE.fullmatch(asked):
        raise UsageError(f"--device {asked}: write cpu, cuda or cuda:N")
    if asked != "cpu" and (why := missing("cuda")):
        raise UsageError(f"--device {asked}: {why}; run with --device cpu")
    return "cuda:0" if asked == "cuda" else asked


def _variants(scenario: Scenario, device: str) -> tuple[VariantInfo, ...]:
    baseline = next(iter(scenario.variants))
    found = []
    for variant in scenario.variants.values():
        against = None if variant.name == baseline else baseline if variant.against == FIRST else variant.against
        lacking = first_missing(variant.needs, device)
        found.append(
            VariantInfo(
                name=variant.name,
                summary=plain(variant.summary),
                against=against,
                claim=plain(variant.claim) if variant.claim else None,
                unchecked=variant.unchecked,
                missing=lacking,
            )
        )
    return tuple(found)


def _functions(entry: Entry, names: Sequence[str]) -> tuple[VariantInfo, ...]:
    if len(set(names)) < len(names):
        raise UsageError(f"{','.join(names)}: each function once")
    for name in names:
        if name not in entry.source.functions:
            have = ", ".join(entry.source.functions) or "none"
            raise UsageError(f"{entry.path.name} binds no {name!r} at its top level; it has {have}")
    return tuple(VariantInfo(name=name, unchecked=UNCHECKED) for name in names)


def _params(name: str, defaults: Mapping[str, Param], chosen: Mapping[str, str]) -> dict[str, Param]:
    found: dict[str, Param] = {}
    for key, text in chosen.items():
        if key not in defaults:
            have = ", ".join(f"{one}={value!r}" for one, value in defaults.items()) or "none"
            raise UsageError(f"{name} has no parameter {key!r}; it has {have}")
        found[key] = _typed(key, text, defaults[key])
    return found


def _typed(key: str, text: str, default: Param) -> Param:
    """The text as a value of the default's type."""
    if isinstance(default, str):
        return text
    try:
        value = literal(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        value = None
    if isinstance(default, bool):
        value = {"true": True, "false": False, "1": True, "0": False}.get(text.strip().lower())
    elif isinstance(default, float) and isinstance(value, int):
        value = float(value)
    elif isinstance(default, int) and isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not type(default):
        raise UsageError(f"--set {key}={text}: {key} takes {_KINDS[type(default)]}, as in {key}={default!r}")
    return value
