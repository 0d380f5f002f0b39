"""`--run WHAT --device all`: every GPU alone, one after the other, then all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gpulab.catalog.needs import missing
from gpulab.core.jobs import RunRequest
from gpulab.core.statuses import ExitCode
from gpulab.features.devices.report import Span, costs
from gpulab.features.devices.view import device_costs
from gpulab.features.doctor.report import probe_torch
from gpulab.headless.drive import PlainProgress, drive
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal, check_json, check_run_file, open_terminal, write_json
from gpulab.headless.printed import show_failures, show_report
from gpulab.headless.tries import refuse_others
from gpulab.report.commands import combine
from gpulab.report.report import RunReport
from gpulab.report.results import header
from gpulab.session.drive import TICK_S, Interrupts
from gpulab.session.launch import Launch, plan, single_launch, start
from gpulab.session.run import Run
from gpulab.session.run_files import default_path
from gpulab.session.session import Session
from gpulab.session.settings import UsageError


def on_all_devices(names: Sequence[str], options: Options) -> int:
    """Measure one scenario on every GPU, alone and together; returns the exit code. UsageError
    where there is no GPU.
    """
    if len(names) != 1:
        raise UsageError("--device all takes one scenario, or functions of one file")
    refuse_others("--device all", options, params=True)
    launch = single_launch(names[0])
    return measure(launch, gpus(), options)


def gpus() -> list[str]:
    """Every GPU that torch can use, as cuda:N. UsageError where there is none."""
    if reason := missing("cuda"):
        raise UsageError(
            "--device all: there is no GPU here (--device cpu runs on the CPU)", reason
        )
    probe = probe_torch()
    count = sum(device.on_gpu for device in probe.devices)
    if probe.problem:
        raise UsageError("--device all: torch cannot be asked", probe.problem)
    if count == 0 or probe.cuda_error:
        raise UsageError(f"--device all: torch cannot use the GPUs: {probe.cuda_error or 'none'}")
    return [f"cuda:{number}" for number in range(count)]


def measure(launch: Launch, devices: Sequence[str], options: Options) -> int:
    """All runs on these devices, the table, and the JSON; returns the exit code."""
    plain = replace(options, profile=options.profile or "off")
    requests = []
    for device in devices:
        request = plan(launch, replace(plain, device=device))
        if isinstance(request, RunReport):
            raise UsageError(f"{launch.entry.name} cannot run on {device}", request.reason)
        if getattr(request.job, "ranks", 1) > 1:
            raise UsageError(
                f"{launch.entry.name} has ranks, which take several GPUs by themselves"
            )
        requests.append(request)
    alone = _paths(launch, "alone", len(devices), options)
    together = _paths(launch, "together", len(devices), options)
    check_json(options.json_file, [*alone, *together])
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    return _Devices(devices, requests, options, terminal).run(alone, together)


def _paths(launch: Launch, phase: str, count: int, options: Options) -> list[Path]:
    """Where run files go: folders of their own, which `--fleet` can fold."""
    if options.output is None:
        labels = [f"{launch.label}-{phase}-{number}" for number in range(count)]
        return [default_path(label, options.share) for label in labels]
    paths = [options.output / phase / f"{launch.label}-{number}.jsonl" for number in range(count)]
    for path in paths:
        check_run_file(path)
    return paths


class _Devices:
    """The runs of one command, with the devices in one order."""

    def __init__(
        self,
        devices: Sequence[str],
        requests: Sequence[RunRequest],
        options: Options,
        terminal: Terminal,
    ) -> None:
        self._devices = devices
        self._requests = requests
        self._options = options
        self._terminal = terminal

    def run(self, alone: Sequence[Path], together: Sequence[Path]) -> int:
        spans: list[Span] = []
        beside: list[RunReport] = []
        with Interrupts() as interrupts:
            own = self._alone(alone, interrupts)
            interrupted = any(report.exit_code == ExitCode.INTERRUPTED for report in own)
            if len(self._devices) > 1 and not interrupted:
                runs = self._together(together, interrupts)
                beside = [run.report for run in runs]
                spans = [(run.state.samples.start, run.state.samples.end) for run in runs]
        self._show([*own, *beside])
        entries = costs(self._devices, own, beside, spans)
        self._terminal.show(device_costs(entries, verbose=self._options.verbose))
        folder = alone[0].parent
        self._terminal.say(f"run files: {folder.parent if self._options.output else folder}")
        reports = [*own, *beside]
        command = combine(reports, reports[0].environment, [], None, devices=entries)
        if self._options.json:
            write_json(command, self._options.json)
        return command.exit_code

    def _alone(self, paths: Sequence[Path], interrupts: Interrupts) -> list[RunReport]:
        reports: list[RunReport] = []
        only = len(self._devices) == 1
        for device, request, path in zip(self._devices, self._requests, paths, strict=True):
            self._terminal.note(f"{device} alone", "bold")
            report = drive(start(request, path), interrupts, self._terminal, last=only)
            show_failures(report, self._terminal)
            reports.append(report)
            if report.exit_code == ExitCode.INTERRUPTED:
                break
        return reports

    def _together(self, paths: Sequence[Path], interrupts: Interrupts) -> list[Run]:
        """All runs at once: each has a session and processes of its own."""
        self._terminal.note(f"all {len(self._devices)} together", "bold")
        sessions: list[Session] = []
        try:
            for request, path in zip(self._requests, paths, strict=True):
                sessions.append(start(request, path))
            interrupts.stop_with(lambda: _cancel(sessions))
            runs = [Run(session) for session in sessions]
            progress = [PlainProgress(self._note_of(device)) for device in self._devices]
            while not all(run.ended for run in runs):
                _first_unended(sessions).wait(TICK_S)
                for run, shown in zip(runs, progress, strict=True):
                    if not run.ended:
                        run.poll()
                        shown.show(run)
        finally:
            _cancel([session for session in sessions if not session.wait(0)])
            for session in sessions:
                session.wait()
        interrupted = any(run.report.exit_code == ExitCode.INTERRUPTED for run in runs)
        interrupts.end(answered=interrupted)
        for run in runs:
            show_failures(run.report, self._terminal)
        return runs

    def _note_of(self, device: str) -> Callable[[str], None]:
        return lambda line: self._terminal.note(f"{device}: {line}", "dim")

    def _show(self, reports: Sequence[RunReport]) -> None:
        if self._options.verbose:
            for report in reports:
                show_report(report, self._terminal, self._options)
        self._terminal.show(header(reports[0]))
        self._terminal.say("")


def _first_unended(sessions: Sequence[Session]) -> Session:
    return next((session for session in sessions if not session.ended), sessions[0])


def _cancel(sessions: Sequence[Session]) -> None:
    for session in sessions:
        session.cancel()
