"""`--fleet`: the run files of many GPUs, each against the median of its model."""

from __future__ import annotations

from pathlib import Path

from gpulab.features.fleet.folder import fold_folder
from gpulab.features.fleet.view import fleet_view
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options, UsageError


def fleet(name: str, options: Options) -> int:
    """Fold the run files of a folder, print outliers with their cause; returns the exit code.
    UsageError where there is no such folder.
    """
    folder = Path(name)
    if not folder.is_dir():
        raise UsageError(f"--fleet {name}: there is no such folder")
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    try:
        report = fold_folder(folder)
    except OSError as error:
        raise UsageError(f"--fleet {name}: {error.strerror}") from None
    terminal.show(fleet_view(report, verbose=options.verbose))
    if options.json:
        write_json(report, options.json)
    return report.exit_code
