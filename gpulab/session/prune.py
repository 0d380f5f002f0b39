"""Run files that nobody needs any more: of each scenario the oldest beyond a number.

Deleted is only what is in the folder of run files, is a regular file with that one name, and holds
a run that has ended: not one that goes on, whether it is being written here or by another host, nor
one that was linked to elsewhere.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Sequence
from glob import escape
from pathlib import Path

from gpulab.core.files import is_held, open_regular
from gpulab.report.past import PastRun
from gpulab.session.run_files import runs_folder


def prune(runs: Sequence[PastRun], keep: int) -> tuple[int, int]:
    """Delete the files of these runs beyond the newest `keep` of each scenario, and their memory
    snapshots; returns how many files that were, and their bytes. OSError.
    """
    folder = runs_folder()
    seen: Counter[tuple[str, str]] = Counter()
    sizes = []
    for run in sorted(runs, key=lambda run: run.at, reverse=True):
        scenario = run.path, run.scenario
        seen[scenario] += 1
        path = Path(run.run_file)
        if seen[scenario] <= keep or path.parent != folder or not _is_ours_alone(path):
            continue
        for file in (path, *folder.glob(f"{escape(path.stem)}-*.pickle")):
            sizes.append(file.lstat().st_size)
            file.unlink()
    return len(sizes), sum(sizes)


def _is_ours_alone(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False
        with open_regular(path) as file:
            return not is_held(file.fileno())
    except OSError:
        return False
