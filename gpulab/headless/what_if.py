"""`--run WHAT --what-if`: what each part of one step would gain, measured by delaying it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace as replace_fields

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import Measure, RunRequest, StepPart
from gpulab.core.statuses import CeilingChoice, ExitCode
from gpulab.features.fixes.facts import StepFacts
from gpulab.features.fixes.text import scenario_text
from gpulab.features.what_if.look import parts_of
from gpulab.features.what_if.parts import PartsRequest, judged, variants_of
from gpulab.features.what_if.view import what_if as table
from gpulab.headless.drive import drive, show_failures, show_report
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal, check_json, check_run_file, open_terminal, write_json
from gpulab.headless.tries import refuse_others, step_request
from gpulab.report.commands import combine
from gpulab.report.report import RunReport
from gpulab.report.results import header
from gpulab.report.sentences import sentence
from gpulab.scenario import shown
from gpulab.session.drive import Interrupts
from gpulab.session.launch import Launch, plan, single_launch, start
from gpulab.session.run_files import default_path
from gpulab.session.settings import UsageError


def what_if(names: Sequence[str], options: Options) -> int:
    """Measure it and print the table; returns the exit code."""
    if len(names) != 1:
        raise UsageError("--what-if takes one scenario or function")
    refuse_others("--what-if", options, params=True)
    launch = single_launch(names[0])
    if len(launch.functions) > 1:
        raise UsageError("--what-if takes one function: --run FILE:function --what-if")
    path = options.output or default_path(f"{launch.label}-what-if")
    if options.output:
        check_run_file(path)
    check_json(options.json_file, [path])
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    with TemporaryDirectory(prefix="gpulab-") as folder:
        request = _request_of_step(launch, options, Path(folder))
        variant, operations = _chosen(request, options.what_if or "")
        terminal.note(f"{names[0]}: looking at the parts of a step", "dim")
        with_parts, parts = _with_delays(request, variant, operations)
        if with_parts is None:
            _say_nothing_to_delay(parts, terminal)
            return ExitCode.MEASURED
        with Interrupts() as interrupts:
            report = drive(start(with_parts, path), interrupts, terminal)
    show_failures(report, terminal)
    _show(report, terminal, options)
    command = combine([report], report.environment, [], None)
    if options.json:
        write_json(command, options.json)
    return command.exit_code


def _request_of_step(launch: Launch, options: Options, folder: Path) -> RunRequest:
    """The run of a scenario; of a function, one that is written for it."""
    planned = _planned(plan(launch, options))
    if not launch.functions:
        return planned
    text = scenario_text(step_request(planned), StepFacts(), ())
    file = folder / f"{launch.label.replace('-', '_').replace('.', '_')}.py"
    file.write_text(text, encoding="utf-8")
    return _planned(plan(Launch(read_file(file)), replace(options, arguments=None)))


def _planned(planned: RunRequest | RunReport) -> RunRequest:
    if isinstance(planned, RunReport):
        assert planned.reason is not None
        raise UsageError(f"--what-if: {sentence(planned.reason)}")
    return planned


def _chosen(request: RunRequest, given: str) -> tuple[str, list[str]]:
    """The variant whose step it is, and the operations that are parts."""
    job = request.job
    assert isinstance(job, Measure)
    names = [info.name for info in job.subject.variants]
    variant, operations = names[0], []
    for name in filter(None, (part.strip() for part in given.split(","))):
        if "::" in name:
            operations.append(name)
        elif name in names:
            variant = name
        else:
            raise UsageError(
                f"--what-if {shown(name)}: neither a variant ({', '.join(names)}) nor an "
                "operation, such as aten::mm"
            )
    return variant, operations


def _with_delays(
    request: RunRequest, variant: str, operations: list[str]
) -> tuple[RunRequest | None, list[StepPart]]:
    """(the request that delays each part, None where there is none; the parts)."""
    job = request.job
    assert isinstance(job, Measure)
    seen = parts_of(PartsRequest(job=job, variant=variant, operations=operations))
    if seen.problem:
        raise UsageError(f"--what-if {job.subject.scenario}: {seen.problem}")
    on_gpu = job.device != "cpu"
    parts = judged(seen, operations, on_gpu=on_gpu)
    if all(part.why_not for part in parts):
        return None, parts
    infos, delay_s = variants_of(variant, parts, seen.step_s, on_gpu=on_gpu)
    unchecked = next(info for info in job.subject.variants if info.name == variant).unchecked
    variants = tuple(replace_fields(info, unchecked=unchecked) for info in infos)
    subject = replace_fields(
        job.subject, variants=variants, parts=tuple(parts), delay_s=delay_s, fixes=()
    )
    job = replace_fields(
        job,
        subject=subject,
        ladder=False,
        fail_below=None,
        # a slope needs a narrow interval, also where it is clear what is slower
        brief=False,
        alone=False,
        ceilings=CeilingChoice.NONE,
    )
    return replace_fields(request, job=job, profile=None), parts


def _say_nothing_to_delay(parts: Sequence[StepPart], terminal: Terminal) -> None:
    terminal.say(
        "no part of this step can be delayed: mark them with lab.phase(NAME), or name an "
        "operation, such as --what-if aten::mm"
    )
    for part in parts:
        terminal.say(f"  {part.name}: {part.why_not}")


def _show(report: RunReport, terminal: Terminal, options: Options) -> None:
    if options.verbose:
        show_report(report, terminal, options)
    terminal.show(header(report))
    terminal.say("")
    if report.what_if is not None:
        terminal.show(table(report.what_if))
    terminal.say("")
    if report.run_file:
        terminal.say(f"run file: {report.run_file}")
