"""A folder of run files read as a fleet: files that are none, or cannot be read, are named."""

from __future__ import annotations

from pathlib import Path

from gpulab.core.files import files_below
from gpulab.core.run_file import RunFileError
from gpulab.core.statuses import ExitCode, conclusion_of
from gpulab.features.fleet.analysis import FEWEST_GPUS, Fleet
from gpulab.features.fleet.findings import no_run_files, too_few_gpus
from gpulab.features.fleet.reading import FileFacts, read_facts
from gpulab.features.fleet.report import FleetReport, SkippedFile

_ENDING = ".jsonl"


def fold_folder(folder: Path) -> FleetReport:
    """The fleet of all run files in a folder, and in those below it. OSError where it cannot be
    listed.
    """
    facts: list[FileFacts] = []
    skipped: list[SkippedFile] = []
    passed_over: list[OSError] = []
    for path in files_below(folder, passed_over):
        name = str(path.relative_to(folder))
        reason = None
        if path.suffix != _ENDING:
            reason = f"its name does not end in {_ENDING}"
        else:
            try:
                one = read_facts(path)
            except RunFileError as error:
                reason = str(error).removeprefix(str(path)).strip()
            except OSError as error:
                reason = error.strerror or str(error)
            else:
                reason = _unusable(one)
        if reason is None:
            facts.append(one)
        else:
            skipped.append(SkippedFile(file=name, reason=reason))
    for each in passed_over:
        name = str(Path(each.filename).relative_to(folder))
        skipped.append(SkippedFile(file=name, reason=str(each.strerror)))
    return _reported(folder, facts, skipped)


def _unusable(facts: FileFacts) -> str | None:
    if not facts.host:
        return "its run did not start"
    if facts.smoke:
        return "a smoke run is no measurement"
    if facts.outcome is None and not facts.variants and not facts.measured_ceilings:
        return "its run has measured nothing and has no end: still running, or killed"
    return None


def _reported(folder: Path, facts: list[FileFacts], skipped: list[SkippedFile]) -> FleetReport:
    if not facts:
        code = ExitCode.FAILED
        return FleetReport(
            outcome=conclusion_of(code),
            exit_code=code,
            reason=no_run_files(folder=str(folder)),
            folder=str(folder),
            skipped=skipped,
        )
    fleet = Fleet(facts)
    gpus = fleet.gpus
    figures = fleet.figures
    code = ExitCode.MEASURED
    reason = None
    if any(gpu.outlier for gpu in gpus):
        code = ExitCode.OUTLIERS
    elif not figures:
        code = ExitCode.INCONCLUSIVE
        reason = too_few_gpus(needed=FEWEST_GPUS)
    return FleetReport(
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
        folder=str(folder),
        files=len(facts),
        hosts=fleet.hosts,
        figures=figures,
        gpus=gpus,
        skipped=skipped,
    )
