"""From an entry of the catalog and settings to a `RunRequest`; every mistake in them is a
`UsageError`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from gpulab.catalog.catalog import Entry, claim_on_cpu, read_file
from gpulab.catalog.needs import first_missing
from gpulab.catalog.reader import literal_of
from gpulab.core.files import read_regular
from gpulab.core.findings import Finding
from gpulab.core.jobs import (
    Arguments,
    Calibrate,
    CountersOptions,
    Follow,
    FunctionFile,
    Measure,
    ProfileOptions,
    Program,
    RunRequest,
    ScenarioFile,
    TimeFunctions,
    VariantInfo,
)
from gpulab.core.limits import (
    LARGEST_INTEGER,
    MESSAGE_LENGTH,
    NAME_LENGTH,
    SOURCE_BYTES,
    TELEMETRY_OFF,
    TELEMETRY_ON,
    TEXT_LENGTH,
    VARIANTS,
)
from gpulab.core.secrets import masked
from gpulab.core.statuses import Cache, CeilingChoice, Clock, Per, Shows
from gpulab.core.text import cut, one_line, plain
from gpulab.features import part
from gpulab.options import Options, UsageError
from gpulab.proc.nvtx_ranges import profiler_listens
from gpulab.report.findings import not_asked_for
from gpulab.scenario import FIRST, Param, Scenario, ScenarioError, beginning, shown
from gpulab.session.settings import check_machine, device_of, telemetry_of

KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}
"""What a parameter takes, by the type of its default."""

_SAME_NAMES = (
    *("threads", "seed", "smoke", "quick", "width", "retune"),
    *("required_speedup", "required_speedups"),
)
_LEAST_FOR_CEILINGS_S = 1.0
"""A shorter run draws no conclusions about the device: measuring that would take longer."""


def request_for(entry: Entry, settings: Options, functions: Sequence[str] = ()) -> RunRequest:
    """The request for one file: its scenario, or the functions of it that are named."""
    check_machine(settings)
    if settings.arguments and not functions:
        raise UsageError("--with makes arguments of functions: write --run FILE:function")
    time_s = settings.time_s or usual_time_s(settings)
    telemetry = telemetry_of(settings)
    device = device_of(settings)
    common = {
        "device": device,
        **{name: getattr(settings, name) for name in _SAME_NAMES},
        "time_s": time_s,
        "brief": settings.time_s is None and settings.width is None,
        "from_start": settings.from_start is not None,
        "solo_runs": telemetry != TELEMETRY_OFF,
        # a shorter run has no time for variants that are built and timed one by one
        "alone": time_s >= 5.0 and not settings.quick,
        "gpu_beside_cpu": telemetry not in (TELEMETRY_ON, TELEMETRY_OFF),
        "ceilings": CeilingChoice.NEEDED,
    }
    if settings.smoke or time_s < _LEAST_FOR_CEILINGS_S:
        common["ceilings"] = CeilingChoice.NONE
    job: Measure | TimeFunctions
    if functions:
        job = _time_functions(entry, settings, functions, common)
    else:
        job = _measure(entry, settings, common)
    if settings.ncu is not None:
        job = replace(job, counters=_counters(job, settings.ncu))
    return RunRequest(
        job=job,
        telemetry=telemetry,
        timeout_s=settings.timeout_s,
        profile=_profile(settings, time_s, entry),
        counters_s=settings.counters,
    )


def _counters(job: Measure | TimeFunctions, variant: str) -> CountersOptions:
    names = [info.name for info in job.subject.variants]
    if variant and variant not in names:
        raise UsageError(f"--ncu {beginning(variant)}: no such variant; it has {', '.join(names)}")
    return CountersOptions(variant=variant)


def usual_time_s(settings: Options) -> float:
    """Return the seconds of measurement where nobody sets them."""
    if settings.smoke:
        return 0.5
    return 1.5 if settings.quick else 10.0


def calibration_request(settings: Options) -> RunRequest:
    """The request that measures the ceilings of the device, and nothing else."""
    check_machine(settings)
    job = Calibrate(
        device=device_of(settings),
        threads=settings.threads,
        seed=settings.seed,
        ranks=settings.ranks,
    )
    return RunRequest(job=job, telemetry=telemetry_of(settings), timeout_s=settings.timeout_s)


def program_request(command: Sequence[str], settings: Options) -> RunRequest:
    """The request to follow a program; `command` is not empty. UsageError."""
    check_machine(settings)
    subject = program_of(command)
    profile = None
    trials = settings.what_if is not None or settings.try_fixes is not None
    # of CUDA's activities there is one subscriber in a process
    listens = settings.nsys is not None or profiler_listens()
    if settings.profile != "off" and not trials and not listens:
        trace = str(settings.trace.absolute()) if settings.trace else None
        profile = ProfileOptions(trace=trace, at_once=bool(trace or settings.profile))
    elif settings.trace:
        without = "--what-if and --try make none" if trials else "--profile off makes none"
        without = "under nsys or ncu there is none" if listens else without
        raise UsageError(f"--trace needs a profile, and {without}")
    what_if, tried = settings.what_if, settings.try_fixes
    nsys = str(settings.nsys.absolute()) if settings.nsys else None
    job = Follow(subject=subject, profile=profile, what_if=what_if, tried=tried, nsys=nsys)
    return RunRequest(job=job, telemetry=telemetry_of(settings), timeout_s=settings.timeout_s)


def program_of(command: Sequence[str]) -> Program:
    """Name a program by its script, module or binary, and the file that tells one version of it
    from another.
    """
    words = [plain(word)[:MESSAGE_LENGTH] for word in masked(command)]
    # unlike Path.is_file, of a word that is too long for a name too
    is_file = os.path.isfile
    script = next((word for word in command if word.endswith(".py") and is_file(word)), None)
    name = Path(script or command[0]).name
    if script is None and "-m" in command[1:-1]:
        name = command[list(command).index("-m") + 1]
    name = cut(one_line(name), NAME_LENGTH) or "program"
    path = Path(script or shutil.which(command[0]) or command[0]).absolute()
    data = "\0".join(words).encode(errors="replace")
    with suppress(OSError):
        data = read_regular(path, SOURCE_BYTES)
    return Program(
        scenario=name,
        path=plain(str(path)),
        source_sha256=sha256(data).hexdigest(),
        variants=(VariantInfo(name=name),),
        title=cut(one_line(" ".join(words)), TEXT_LENGTH),
        argv=tuple(words),
        folder=plain(os.getcwd()),  # noqa: PTH109
    )


def values_to_sweep(entry: Entry, text: str) -> tuple[str, list[str]]:
    """The parameter to sweep and its values, from `name=a,b,c`, or `name` or nothing for the
    scenario's own.
    """
    scenario = entry.scenario
    if scenario is None:
        raise UsageError(f"--sweep requires a scenario, and {entry.path.name} has none")
    name, equals, listed = text.partition("=")
    if not name and len(scenario.sweep) == 1:
        name = next(iter(scenario.sweep))
    shown_name = beginning(name) or "name"
    if not equals and name not in scenario.sweep:
        own = ", ".join(scenario.sweep) or "none"
        raise UsageError(
            f"--sweep {beginning(text)}: {entry.name} has no sweep of it (its own: {own}); write "
            f"--sweep {shown_name}=a,b,c"
        )
    given = listed.split(",") if equals else map(str, scenario.sweep[name])
    values = list(dict.fromkeys(value.strip() for value in given if value.strip()))
    if not values:
        raise UsageError(f"--sweep {shown_name}: it has no values; write {shown_name}=a,b,c")
    return name, values


def _measure(entry: Entry, settings: Options, common: Mapping[str, object]) -> Measure:
    scenario, on_cpu = entry.scenario, common["device"] == "cpu"
    if scenario is None:
        raise UsageError(f"{entry.path.name} has no Scenario")
    defaults = scenario.resolve(on_cpu=on_cpu, smoke=settings.smoke, chosen={})
    chosen = typed_params(entry.name, defaults, settings.chosen)
    subject = ScenarioFile(
        scenario=entry.name,
        path=str(entry.path),
        source_sha256=entry.sha256,
        source=entry.source,
        hides=entry.hides,
        title=entry.title,
        variants=_variants(entry.name, scenario, str(common["device"]), settings.variant),
        topic=one_line(scenario.topic),
        claim=claim_on_cpu(one_line(scenario.claim), scenario.cpu if on_cpu else {}),
        no_effect_reason=one_line(scenario.no_effect_reason),
        item=one_line(scenario.item),
        params={**defaults, **chosen},
        env=scenario.env,
        exercise=entry.text.exercise or "" if entry.judge else "",
        judge=entry.judge,
    )
    return Measure(
        **common,  # type: ignore[arg-type]
        subject=subject,
        roof=scenario.roof,
        per=Per(scenario.per),
        clock=Clock.WALL if on_cpu else Clock(scenario.clock),
        cache=Cache(scenario.cache),
        ladder=scenario.ladder,
        exclusive=scenario.exclusive,
        increasing_memory=scenario.increasing_memory,
        ranks=_ranks(scenario, subject.params),
        shows=Shows(scenario.shows),
        fail_below=scenario.fail_below,
        cases=scenario.cases,
    )


def _ranks(scenario: Scenario, params: Mapping[str, Param]) -> int:
    try:
        return scenario.ranks_of(params)
    except ScenarioError as error:
        raise UsageError(str(error)) from None


def _time_functions(
    entry: Entry, settings: Options, functions: Sequence[str], common: Mapping[str, object]
) -> TimeFunctions:
    if settings.variant:
        raise UsageError("--variant: the functions that are named are the variants")
    if settings.chosen:
        name = next(iter(settings.chosen))
        raise UsageError(f"a plain function has no parameters, and no {shown(name)}")
    if len(functions) > VARIANTS:
        raise UsageError(
            f"{entry.path.name}: {len(functions)} functions, and one run takes at most {VARIANTS}"
        )
    if len(set(functions)) < len(functions):
        raise UsageError(f"{beginning(','.join(functions))}: name each function once")
    for name in functions:
        _check_defined(entry, name)
    subject = FunctionFile(
        scenario=f"{entry.path.stem}:{','.join(functions)}",
        path=str(entry.path),
        source_sha256=entry.sha256,
        source=entry.source,
        hides=entry.hides,
        title="" if entry.title == entry.name else entry.title,
        variants=tuple(VariantInfo(name=name) for name in functions),
        arguments=_arguments(entry, settings.arguments) if settings.arguments else None,
    )
    return TimeFunctions(**common, subject=subject)  # type: ignore[arg-type]


def _check_defined(entry: Entry, name: str) -> None:
    if name in entry.text.names:
        return
    names = ", ".join(entry.text.names)
    hint = f"it defines {cut(names, TEXT_LENGTH)}" if names else "the file defines no functions"
    raise UsageError(f"{entry.path.name} defines no {shown(name)} at its top level; {hint}")


def _arguments(entry: Entry, given: str) -> Arguments:
    """The function that --with names, in a file of its own or in that of the functions."""
    file, colon, function = given.rpartition(":")
    made_by = entry
    if colon:
        made_by = read_file(Path(file))
        if made_by.error:
            raise UsageError(f"--with {beginning(given)}: {made_by.error}")
    _check_defined(made_by, function)
    callable_ = made_by.text.callables.get(function)
    required = callable_.required if callable_ else ()
    if others := [name for name in required if name != "device"]:
        raise UsageError(
            f"--with {beginning(given)}: {function} itself takes {', '.join(others)}; it may take "
            "device, and nothing else without a default"
        )
    same = made_by.path == entry.path
    return Arguments(
        function=function,
        path=str(made_by.path),
        source_sha256=made_by.sha256,
        source="" if same else made_by.source,
    )


def _profile(settings: Options, time_s: float, entry: Entry) -> ProfileOptions | None:
    """A run shorter than a second asks for its speedup and no more, unless it says so."""
    requested = settings.trace is not None or settings.memory
    if not requested and (
        settings.profile == "off" or settings.smoke or time_s < _LEAST_FOR_CEILINGS_S
    ):
        return None
    trace = str(settings.trace.absolute()) if settings.trace else None
    return ProfileOptions(
        trace=trace,
        memory="" if settings.memory else None,
        every=requested or settings.profile == "all",
        also=tuple(part("course.report:variants_asked", entry.name) or ()),
        utilization=bool(part("course.report:asks_utilization", entry.name)),
    )


def _variants(
    name: str, scenario: Scenario, device: str, wanted: Sequence[str]
) -> tuple[VariantInfo, ...]:
    """All of the file: those that are not `wanted` are skipped, as with unmet needs."""
    baseline = next(iter(scenario.variants))
    asked_for = {
        variant
        for variant in scenario.variants
        if not wanted or any(re.fullmatch(each, variant) for each in wanted)
    }
    if not asked_for:
        raise UsageError(
            f"--variant {wanted[0]}: {name} has no such variant; it has "
            f"{', '.join(scenario.variants)}"
        )
    infos = []
    alone = scenario.shows in (Shows.CURVE, Shows.CLOCKS)
    for variant in scenario.variants.values():
        named = baseline if variant.against == FIRST else variant.against
        against = None if alone or variant.name == baseline else named
        missing: Finding | None = not_asked_for()
        if variant.name in (baseline, *asked_for):
            missing = first_missing(variant.needs, device)
        infos.append(
            VariantInfo(
                name=variant.name,
                summary=one_line(variant.summary),
                against=against,
                claim=one_line(variant.claim) if variant.claim else None,
                unchecked=variant.unchecked,
                missing=missing,
            )
        )
    return tuple(infos)


def typed_params(
    scenario: str, defaults: Mapping[str, Param], chosen: Mapping[str, str]
) -> dict[str, Param]:
    params: dict[str, Param] = {}
    for name, text in chosen.items():
        if name not in defaults:
            available = (
                ", ".join(f"{other}={shown(value)}" for other, value in defaults.items()) or "none"
            )
            raise UsageError(
                f"{scenario} has no parameter {shown(name)}; its parameters: {available}"
            )
        params[name] = _typed(name, text, defaults[name])
    return params


def _typed(name: str, text: str, default: Param) -> Param:
    """The text as a value of the default's type."""
    if isinstance(default, str):
        return _checked_text(name, text)
    reason = ""
    try:
        value = literal_of(text)
    except ValueError as error:
        value, reason = None, f" ({error})"
    if isinstance(default, bool):
        value = {"true": True, "false": False, "1": True, "0": False}.get(text.strip().lower())
    elif isinstance(default, float) and isinstance(value, int):
        value = float(value)
    elif isinstance(default, int) and isinstance(value, float) and value.is_integer():
        value = int(value) if abs(value) <= LARGEST_INTEGER else None
    if type(value) is not type(default):
        kind = KINDS[type(default)]
        message = f"{name}={beginning(text)}: {name} takes {kind}, as in {name}={default!r}{reason}"
        raise UsageError(message)
    return value


def _checked_text(name: str, text: str) -> str:
    if len(text) > TEXT_LENGTH:
        raise UsageError(f"{name}={beginning(text)}: a text has at most {TEXT_LENGTH} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name}={shown(text)}: write it in UTF-8") from None
    return text
