"""How many honest comparisons are verified, by the checks alone: `honest.py [GPULAB] [EVERY]`.

Runs every third file of `tests/gauntlet/comparisons` (or each EVERYth) with the program GPULAB, a
second each. Checks of the machine (control, processes, contention, clocks) are left out: they say
how busy it is. A comparison counts as verified where all others passed, or did not run and do not
decide.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "gauntlet"))

from tables import files_of  # noqa: E402

NOISY = {"control", "processes", "contention", "clocks"}
DECISIVE = {"outputs", "timed steps", "inputs", "null answers"}
OPTIONS = ["--device", "cpu", "--time", "1", "--telemetry", "off", "--profile", "off"]


def main() -> None:
    gpulab = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).parent / "gpulab")
    every = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    files, _ = files_of(ROOT / "tests" / "gauntlet" / "comparisons")
    counts: Counter[str] = Counter()
    for file in files[::every]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{file.name}.py"
            path.write_text(file.text())
            run = result_of(gpulab, path)
        for comparison in run["comparisons"] if run else ():
            state, why = judged(comparison)
            counts[state] += 1
            counts[f"graded {(comparison.get('trust') or {}).get('grade')}"] += 1
            print(f"{file.name:28} {comparison['variant']:28} {state:10} {why}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))


def result_of(gpulab: str, path: Path) -> dict | None:
    """The run in the JSON of a file; None where it has none."""
    result = path.with_suffix(".json")
    command = [gpulab, "--run", str(path), *OPTIONS, "--json", str(result)]
    environment = {**os.environ, "XDG_STATE_HOME": str(path.parent)}
    subprocess.run(
        command, cwd=path.parent, env=environment, capture_output=True, timeout=300, check=False
    )
    if not result.exists():
        print(f"{path.stem:28} no result", flush=True)
        return None
    return json.loads(result.read_text())["runs"][0]


def judged(comparison: dict) -> tuple[str, str]:
    """Whether the checks that are not of the machine hold, and which do not."""
    checks = (comparison.get("trust") or {}).get("checks", [])
    states = {check["kind"]: check for check in checks if check["kind"] not in NOISY}
    open_checks = [
        f"{kind} {check['state']}: {(check.get('result') or {}).get('code', '')}"
        for kind, check in states.items()
        if check["state"] in ("failed", "doubtful")
        or (check["state"] == "not run" and kind in DECISIVE)
    ]
    return ("open" if open_checks else "verified"), "; ".join(open_checks)


if __name__ == "__main__":
    main()
