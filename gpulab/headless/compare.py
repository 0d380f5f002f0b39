"""`--compare`: saved runs before and after a change, or two folders of them; or what is measured
anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from gpulab.catalog.source import is_folder
from gpulab.core.files import files_below
from gpulab.core.findings import Finding
from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.run_file import RunFileError
from gpulab.core.statuses import Conclusion
from gpulab.core.text import cut
from gpulab.features.compare.analysis import SavedRun, compare_sides, saved_run
from gpulab.features.compare.findings import file_skipped
from gpulab.features.compare.for_ci import cases_of
from gpulab.features.compare.gating import gated
from gpulab.features.compare.report import ComparisonReport
from gpulab.features.compare.view import comparison_view
from gpulab.headless.export import export
from gpulab.headless.gate import RunGate, write_junit
from gpulab.headless.output import Terminal, open_terminal, write_json
from gpulab.headless.programs import measure_programs
from gpulab.headless.sides import measure_sides, refuse_measuring
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.session.run import whole_run
from gpulab.session.saved import SUFFIXES, open_run
from gpulab.session.sides import is_measured
from gpulab.show.display import rendered_comparison

_WITHOUT_RESULT = (Conclusion.FAILED, Conclusion.INTERRUPTED, Conclusion.SKIPPED)


def compare(words: Sequence[str], options: Options) -> int:
    """Compare BEFORE with AFTER and print what differs; returns the exit code. UsageError where a
    side is no run, and nothing that can be measured.
    """
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    gate = RunGate(options)
    gate.announce(terminal)
    if not words and options.what:
        report = measure_programs(options.what, options, terminal, gate.of)
        return finish(report, options, gate, terminal)
    if len(words) != 2:
        raise UsageError("--compare takes BEFORE AFTER, or -- PROGRAM -- PROGRAM")
    if is_measured(words, options.what):
        report = measure_sides(words, options, terminal, gate.of)
        return finish(report, options, gate, terminal)
    refuse_measuring(options)
    return finish(compare_saved(*words), options, gate, terminal)


def compare_saved(before: str, after: str) -> ComparisonReport:
    """Compare saved runs, or folders of them. UsageError where a side is none."""
    skipped: list[Finding] = []
    a = _side(before, skipped)
    b = _side(after, skipped)
    report = compare_sides(before, after, a, b)
    return replace(report, findings=[*report.findings, *skipped])


def finish(report: ComparisonReport, options: Options, gate: RunGate, terminal: Terminal) -> int:
    """Print a comparison with its gates, and write what was asked for; returns its exit code."""
    gate.check_names({each.scenario: each.variants for each in report.comparisons})
    report = gated(report, gate.of)
    if options.markdown:
        terminal.say(*rendered_comparison(report, "md").splitlines())
    else:
        terminal.show(comparison_view(report, verbose=options.verbose))
    if options.json:
        write_json(report, options.json)
    if options.export:
        export([(partial(rendered_comparison, report), options.export)], terminal)
    if options.junit:
        write_junit(options.junit, cases_of(report))
    return report.exit_code


def _side(name: str, skipped: list[Finding]) -> list[SavedRun]:
    """The runs that a name stands for: one, or those of a folder. What of a folder is no run, or
    measured nothing, is skipped.
    """
    folder = Path(name)
    if not is_folder(folder):
        only = open_run(name)
        return [saved_run(only.report, only.state)]
    runs = []
    passed_over: list[OSError] = []
    for path in files_below(folder, passed_over):
        if not path.name.endswith(SUFFIXES):
            continue
        try:
            run = whole_run(path)
        except RunFileError as error:
            skipped.append(file_skipped(file=str(path), why=str(error).removeprefix(f"{path} ")))
        except OSError as error:
            skipped.append(file_skipped(file=str(path), why=error.strerror or str(error)))
        else:
            if why := _useless(run.report):
                skipped.append(file_skipped(file=str(path), why=why))
            else:
                runs.append(saved_run(run.report, run.state))
    skipped += [
        file_skipped(file=str(each.filename), why=str(each.strerror)) for each in passed_over
    ]
    if not runs:
        why = "; ".join(dict.fromkeys(str(finding.values["why"]) for finding in skipped))
        said = f": {cut(why, TEXT_LENGTH)}" if why else ""
        raise UsageError(f"{name}: no run file in this folder holds a whole run{said}")
    return runs


def _useless(report: RunReport) -> str:
    """Why a run of a folder is none to compare; empty where it is one."""
    if report.smoke:
        return "a smoke run is no measurement"
    return str(report.outcome) if report.outcome in _WITHOUT_RESULT else ""
