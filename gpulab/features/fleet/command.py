"""`--fleet`: the run files of many GPUs, each against the median of its model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gpulab.core.statuses import ExitCode
from gpulab.features.fleet.folder import fold_folder
from gpulab.features.fleet.view import fleet_view
from gpulab.headless.output import Terminal, open_terminal, write_json
from gpulab.options import Options, UsageError
from gpulab.session.launch import single_launch
from gpulab.session.run_files import runs_folder

_RAY = "ray"


def fleet(words: Sequence[str], options: Options) -> int:
    """Fold the run files of a folder, or of what a Ray cluster has measured, print outliers with
    their cause; returns the exit code. UsageError where there is no such folder, or no cluster.
    """
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    if words[0] == _RAY and len(words) == 2:
        return _measured_by_ray(words[1], options, terminal)
    if len(words) > 1:
        raise UsageError(f"--fleet {' '.join(words)}: write one FOLDER, or ray and a scenario")
    if options.given("output", "device", "time_s", "chosen", "quick", "smoke"):
        raise UsageError("--fleet FOLDER measures nothing: only --json, --verbose and --ascii")
    path = Path(words[0])
    if not path.is_dir():
        hint = "; --fleet ray SCENARIO measures on a Ray cluster" if words[0] == _RAY else ""
        raise UsageError(f"--fleet {words[0]}: there is no such folder{hint}")
    return _folded(path, options, terminal)


def _folded(folder: Path, options: Options, terminal: Terminal) -> int:
    try:
        report = fold_folder(folder)
    except OSError as error:
        raise UsageError(f"--fleet {folder}: {error.strerror}") from None
    terminal.show(fleet_view(report, verbose=options.verbose))
    if options.json:
        write_json(report, options.json)
    return report.exit_code


def _measured_by_ray(name: str, options: Options, terminal: Terminal) -> int:
    from gpulab.features.fleet.ray_cluster import measure_on_cluster

    if options.device not in (None, "cpu"):
        raise UsageError("--fleet ray takes every GPU of the cluster, or --device cpu every node")
    launch = single_launch(name)
    if launch.entry.scenario is None or launch.functions:
        raise UsageError(f"--fleet ray {name}: write a scenario")
    folder = options.output or _new_folder(launch.label)
    lost = measure_on_cluster(launch, folder, options, terminal)
    code = _folded(folder, options, terminal)
    terminal.say(f"run files: {folder}")
    return ExitCode.FAILED if lost else code


def _new_folder(label: str) -> Path:
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return runs_folder().parent / "fleets" / f"{now}-{label}"
