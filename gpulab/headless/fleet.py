"""`--fleet`: the run files of many GPUs, each against the median of its model."""

from __future__ import annotations

from pathlib import Path

from gpulab.features.fleet.folder import fold_folder
from gpulab.features.fleet.view import fleet_view
from gpulab.headless.options import Options
from gpulab.headless.output import check_json, open_terminal, write_json
from gpulab.session.settings import UsageError


def fleet(folder: str, options: Options) -> int:
    """Fold the run files of a folder, print outliers with their cause; returns the exit code.
    UsageError where there is no such folder.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"--fleet {folder}: there is no such folder")
    check_json(options.json_file, [])
    try:
        report = fold_folder(path)
    except OSError as error:
        raise UsageError(f"--fleet {folder}: {error.strerror}") from None
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    terminal.show(fleet_view(report, verbose=options.verbose))
    if options.json:
        write_json(report, options.json)
    return report.exit_code
