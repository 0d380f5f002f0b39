"""The longer mode: so many odd files of every kind, each timed and its memory watched.

    # 1: 10,000 scenario files, 5,000 of each other kind
    python tests/fuzz/run.py [SCALE] [KIND ...]

Prints for each kind how many cases there were, what broke, the slowest and the most memory of the
process; the numbers of what broke are its seeds. Anything that breaks, or takes longer than 2 s or
500 MB, ends it with exit code 1.
"""

import importlib
import random
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

COUNTS = {
    "scenario_files": 10_000,
    "values": 5_000,
    "run_files": 5_000,
    "event_streams": 5_000,
    "traces": 5_000,
    "user_files": 5_000,
}
MOST_S, MOST_MB = 2.0, 500


def main(scale="1", *kinds):
    broken = 0
    print(
        f"{'kind':<18}{'cases':>8}{'broken':>8}{'over 2 s':>10}{'slowest':>10}{'memory':>10}{'time':>8}",
        flush=True,
    )
    for kind in kinds or COUNTS:
        broken += fuzz(kind, max(1, int(COUNTS[kind] * float(scale))))
    sys.exit(broken > 0)


def fuzz(kind, count):
    """Check so many cases of a kind; returns how many broke."""
    module = importlib.import_module(f"fuzz.{kind}")
    failures: dict[str, list] = {}
    slowest, slow, started = 0.0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            case = module.case(random.Random(number))
            begun = time.monotonic()
            try:
                module.check(case, Path(folder))
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                reason = f"{type(error).__name__}: {error!s:.150} at {last.filename}:{last.lineno}"
                failures.setdefault(reason, []).append(number)
            taken = time.monotonic() - begun
            slow += taken > MOST_S
            slowest = max(slowest, taken)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    broken = sum(map(len, failures.values()))
    taken = time.monotonic() - started
    print(
        f"{kind:<18}{count:>8,}{broken:>8}{slow:>10}{slowest:>8.2f} s{peak_mb:>7.0f} "
        f"MB{taken:>6.0f} s",
        flush=True,
    )
    for reason, numbers in failures.items():
        print(f"  {len(numbers)} x {reason}; cases {numbers[:5]}", flush=True)
    return broken + slow + (peak_mb > MOST_MB)


if __name__ == "__main__":
    main(*sys.argv[1:])
