"""Are planted faults found in a fleet, with their cause, and how long does it take to fold one?

    python benchmarks/fleet.py [NODES] [SEED ...]      # 1,000 nodes, seed 1

Writes a run file of each node (a recorded run of an H200, as it would be on that GPU) and files that
are none; 12 GPUs have a fault. Prints what was found, what was false, and seconds of CPU.
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import written_fleet

from gpulab.features.fleet.folder import fold_folder


def main(nodes=1000, *seeds):
    for seed in seeds or (1,):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            gpus = written_fleet.fleet(nodes, seed)
            size = written_fleet.write(folder, gpus, seed)
            foreign = written_fleet.spoil(folder)
            cpu_s, wall_s = process_time(), perf_counter()
            report = fold_folder(folder)
            cpu_s, wall_s = process_time() - cpu_s, perf_counter() - wall_s
            found, false, missed = written_fleet.judge(report, gpus)
            skipped = sorted(file.file for file in report.skipped)
            print(
                f"seed {seed}: {nodes:,} nodes, {size / 1e6:.0f} MB: {found} of "
                f"{len(written_fleet.FAULTS)} faults with their cause, {len(false)} false, "
                f"{len(skipped)} of {len(foreign)} foreign files skipped; "
                f"{cpu_s:.2f} s of CPU, {wall_s:.2f} s"
            )
            for fault, cause in missed:
                print(f"  missed: {fault}, said: {cause}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
