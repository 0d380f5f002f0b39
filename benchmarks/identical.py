"""Is identical code ever called faster or slower? Each kind of pair against its twin, in turn.

    python benchmarks/identical.py [200] [--busy 2] [--time 2] [--device cpu] [--core 0]

Each run goes through the command line and is read from its --json: the verdict of the twin. A run
takes 6 s of CPU time, and at least `--time` seconds more of a clock where the machine is busy; the
table says how long each kind took. `--busy` processes compute all the time beside them. It fails
where more than one is faster or slower.
"""

import argparse
import ast
import os
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic

from commands import result_of
from pair_runs import BASELINE, FOLDER, KINDS, QUIET, pin

MOST_FALSE = 1
FALSE = ("faster", "slower")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", type=int, nargs="?", default=200)
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside them")
    parser.add_argument("--time", default="2", help="seconds of rounds of each run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--core", type=int, help="keep everything on one core")
    options = parser.parse_args()
    pin(options.core)
    found = defaultdict(list)
    with TemporaryDirectory() as folder, busy(options.busy):
        scenarios = {kind: twins(kind, Path(folder)) for kind in KINDS}
        for number, kind in enumerate(islice(cycle(KINDS), options.runs), 1):
            began = monotonic()
            entry = measured(scenarios[kind], options, Path(folder))
            found[kind].append({**entry, "seconds": monotonic() - began})
            words = entry["shown"]["words"]
            print(f"{number} of {options.runs} {kind}: {words}", file=sys.stderr, flush=True)
    false = report(found)
    return false > MOST_FALSE


@contextmanager
def busy(count):
    """So many processes that compute without an end."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def twins(kind, folder):
    """The scenario of a pair without its variants that do something else."""
    tree = ast.parse((FOLDER / f"{kind}.py").read_text())
    tree.body = [node for node in tree.body if not is_unlike(node)]
    path = folder / f"{kind}.py"
    path.write_text(ast.unparse(tree))
    return path


def is_unlike(node):
    return bool(getattr(node, "decorator_list", ())) and node.name not in (BASELINE, "twin")


def measured(path, options, folder):
    """The comparison of the twin, and the control's verdict."""
    flags = ("--time", options.time, "--device", options.device, *QUIET)
    run = result_of(path, *flags, env={**os.environ, "XDG_STATE_HOME": str(folder)})
    (twin,) = run["comparisons"]
    return {**twin, "control": run["control"]["verdict"]}


def report(found):
    """Prints a row a kind; how many verdicts are false."""
    print(f"{'kind':<16} {'runs':>4} {'s':>5}  {'widest bound':<30} verdicts; of the controls")
    every = Counter()
    for kind, entries in found.items():
        verdicts = Counter(entry["verdict"] for entry in entries)
        controls = Counter(entry["control"] for entry in entries)
        every += verdicts
        every["controls"] += sum(controls[word] for word in FALSE)
        widest = max(entries, key=lambda entry: (entry["high"] or 1) / (entry["low"] or 1))
        seconds = median(entry["seconds"] for entry in entries)
        said = widest["shown"]["bound"] or widest["verdict"]
        line = f"{kind:<16} {len(entries):>4} {seconds:>5.1f}  {said:<30}"
        print(f"{line} {counted(verdicts)}; {counted(controls)}")
    false = every["faster"] + every["slower"]
    print(f"faster or slower: {false} of {sum(map(len, found.values()))} (at most {MOST_FALSE});")
    print(f"controls that were, which makes their runs invalid: {every['controls']}")
    return false


def counted(verdicts):
    return ", ".join(f"{word} {count}" for word, count in verdicts.most_common())


if __name__ == "__main__":
    sys.exit(main())
