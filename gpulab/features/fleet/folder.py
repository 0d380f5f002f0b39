"""A folder of run files read as a fleet: files that are none, or cannot be read, are named."""

from __future__ import annotations

from pathlib import Path

from gpulab.core.files import files_below
from gpulab.core.run_file import RunFileError
from gpulab.core.statuses import ExitCode, conclusion_of
from gpulab.features.fleet.analysis import Fleet
from gpulab.features.fleet.figures import FEWEST_GPUS
from gpulab.features.fleet.findings import no_run_files, too_few_gpus
from gpulab.features.fleet.reading import FileFacts, read_facts
from gpulab.features.fleet.report import FleetReport, SkippedFile


def fold_folder(folder: Path) -> FleetReport:
    """The fleet of all run files in a folder, and in those below it. OSError where it cannot be
    listed.
    """
    facts: list[FileFacts] = []
    skipped: list[SkippedFile] = []
    passed_over: list[OSError] = []
    for path in files_below(folder, passed_over):
        try:
            if path.suffix != ".jsonl":
                raise RunFileError("its name does not end in .jsonl")
            one = read_facts(path)
            reason = _unusable(one)
        except RunFileError as error:
            reason = str(error).removeprefix(str(path)).strip()
        except OSError as error:
            reason = error.strerror or str(error)
        if reason is None:
            facts.append(one)
        else:
            skipped.append(SkippedFile(file=str(path.relative_to(folder)), reason=reason))
    for each in passed_over:
        name = str(Path(each.filename).relative_to(folder))
        skipped.append(SkippedFile(file=name, reason=str(each.strerror)))
    return _reported(folder, facts, skipped)


def _unusable(facts: FileFacts) -> str | None:
    if not facts.host:
        return "its run did not start"
    if facts.job and facts.job.smoke:
        return "a smoke run is no measurement"
    if facts.outcome is None and not facts.built and not facts.own_ceilings:
        return "incomplete run file: still running or killed"
    return None


def _reported(folder: Path, facts: list[FileFacts], skipped: list[SkippedFile]) -> FleetReport:
    gpus = Fleet(facts).gpus
    code = ExitCode.MEASURED
    reason = None
    if not facts:
        code = ExitCode.FAILED
        reason = no_run_files(folder=str(folder))
    elif any(gpu.outlier for gpu in gpus):
        code = ExitCode.OUTLIERS
    elif not any(gpu.ratios for gpu in gpus):
        code = ExitCode.INCONCLUSIVE
        reason = too_few_gpus(needed=FEWEST_GPUS)
    return FleetReport(
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
        folder=str(folder),
        files=len(facts),
        hosts=len({gpu.host for gpu in gpus}),
        gpus=gpus,
        skipped=skipped,
    )
