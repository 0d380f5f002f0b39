"""Does --compare of two commits find what became slower, and nothing else?

    python benchmarks/revisions.py [PAIRS] [--time 20] [--of arguments|numpy|interpreters|programs]

In a repository of its own: PAIRS (50) comparisons of commits that differ in a comment alone, and as
many where a compute-bound function does 3 % more work; a commit that changes documents, which must
end with exit code 0 at once; two environments with another version of a package, which must be said.
With --of the function takes arguments, or returns an array of NumPy; or the two stand in
environments of their own, or in programs.
After all of it, every file of the checkout and of `.git` must be what it was. And simulated: how
often any of the looks at one comparison misses a median of zero, with normal and with heavy tails.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from random import Random
from time import monotonic

from commands import GPULAB, with_ends

from gpulab.features.compare.measured import Pairs, interval_of, is_interim_analysis

HELPER = """\
def work():
    x = 1
    for _ in range({count}):
        x = (x * 1103515245 + 12345) % 2147483648
    return x > 0  # {comment}
"""
STEP = """\
import helper


def step():
    return helper.work()
"""
STEPS = {
    "commits": STEP,
    "numpy": """\
import numpy

import helper


def step():
    helper.work()
    return numpy.arange(100.0)
""",
    "arguments": """\
import helper


def given():
    return {"count": 2}


def step(count):
    return [helper.work() for _ in range(count)]
""",
}
COUNT, SLOWER = 3000, 1.03
PROGRAM_COUNT = 3_000_000
MOST_ALARMS, LEAST_FOUND = 0.02, 0.94
QUICK_S = 5.0
SIMULATED, MOST_MISSED = 4000, 0.01
MOST_PAIRS = 200


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pairs", type=int, nargs="?", default=50)
    parser.add_argument("--time", default="20", help="the limit of each comparison in seconds")
    parser.add_argument(
        "--of", choices=(*STEPS, "interpreters", "programs"), default="commits", help="what differs"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project", STEPS.get(options.of, STEP))
        kinds = {"interpreters": in_environments, "programs": as_programs}
        sides = kinds.get(options.of, in_commits)(project, Path(folder))
        holds = [
            compared(sides, "same", options, wanted="faster slower", most=MOST_ALARMS),
            compared(sides, "slower", options, wanted="slower", least=LEAST_FOUND),
        ]
        if options.of != "commits":
            return not all(holds)
        holds += [
            documents(project),
            environments(project, Path(folder)),
            looks("normal", lambda draw: draw.gauss()),
            looks("heavy tails", lambda draw: draw.gauss() / max(0.05, draw.random())),
        ]
        untouched = contents(project.folder) == project.contents
        print(f"{'files of the checkout and of .git':34} {'untouched' if untouched else 'CHANGED'}")
    return not (all(holds) and untouched)


class Project:
    """A repository with the commits that are compared."""

    def __init__(self, folder, step):
        self.folder = folder
        self.words = ["--with", "step.py:given"] if "def given" in step else []
        folder.mkdir()
        self.git("init", "-q")
        (folder / "step.py").write_text(step)
        self.commit("base", COUNT, "before")
        self.commit("same", COUNT, "after")
        self.commit("slower", round(COUNT * SLOWER), "before")
        self.commit("again", COUNT, "before")
        (folder / "README.md").write_text("words")
        self.commit("documents", COUNT, "before")
        (folder / "helper.py").write_text("an edit that is not committed")
        self.contents = contents(folder)

    def git(self, *words):
        author = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *author, *words], cwd=self.folder, check=True)

    def commit(self, tag, count, comment):
        (self.folder / "helper.py").write_text(HELPER.format(count=count, comment=comment))
        self.git("add", ".")
        self.git("commit", "-qm", tag)
        self.git("tag", tag)

    def compare(self, before, after, *words):
        """Exit code, the report of its JSON, and the seconds that it took."""
        return self.run(before, after, "--json", *self.words, *words, "--", "step.py:step")

    def run(self, *words):
        """As `compare`, with all that follows --compare."""
        command = [*GPULAB, "--compare", *words]
        started = monotonic()
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        took_s = monotonic() - started
        if not ended.stdout:
            sys.exit(ended.stderr.decode())
        return ended.returncode, with_ends(json.loads(ended.stdout)), took_s


def in_commits(project, _):
    """What compares a commit with the base."""
    return lambda after, *words: project.compare("git:base", f"git:{after}", *words)


def in_environments(project, folder):
    """What compares one environment with another, of the same step and another package."""
    sides = {}
    for name, count in (("base", COUNT), ("same", COUNT), ("slower", round(COUNT * SLOWER))):
        sides[name] = environment_with(folder / name, HELPER.format(count=count, comment=name))
    (project.folder / "helper.py").unlink()  # the project's own would come first
    return lambda after, *words: project.compare(sides["base"], sides[after], *words)


def as_programs(project, folder):
    """What compares one program with another."""
    scaled = round(PROGRAM_COUNT * SLOWER)
    for name, count in (("base", PROGRAM_COUNT), ("same", PROGRAM_COUNT), ("slower", scaled)):
        text = HELPER.format(count=count, comment=name)
        (folder / f"{name}.py").write_text(f"{text}\n\nwork()\n")

    def compare(after, *words):
        programs = (["--", sys.executable, str(folder / f"{name}.py")] for name in ("base", after))
        first, second = programs
        return project.run("--json", *words, *first, *second)

    return compare


def environment_with(folder, helper):
    """An environment that has the text as its package `helper`; as a side of --compare."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    (packages / "helper.py").write_text(helper)
    return f"python:{folder}"


def contents(folder):
    """Every file with its digest."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def compared(compare, after, options, *, wanted, most=None, least=None):
    """How often the verdict is one of the `wanted`; whether that is seldom, or often, enough."""
    verdicts, ratios, seconds = [], [], []
    for number in range(options.pairs):
        _, report, took_s = compare(after, "--time", options.time)
        (row,) = report["comparisons"][0]["rows"]
        verdicts.append(row["verdict"])
        ratios.append(round(row["ratio"] or 0.0, 4))
        seconds.append(took_s)
        said = ", ".join(str(row[key]) for key in ("verdict", "ratio", "low", "high"))
        print(f"  {after} {number + 1}: {said}, {took_s:.1f} s", file=sys.stderr)
    count = sum(verdict in wanted.split() for verdict in verdicts)
    share = count / options.pairs
    ok = share <= most if most is not None else share >= least
    demanded = f"at most {most:.0%}" if most is not None else f"at least {least:.0%}"
    print(
        f"{f'base against {after}':34} {count} of {options.pairs} {wanted.replace(' ', ' or ')} "
        f"({demanded}); ratios {min(ratios)} to {max(ratios)}; "
        f"{min(seconds):.1f} to {max(seconds):.1f} s"
    )
    return ok


def documents(project):
    code, report, took_s = project.compare("git:again", "git:documents")
    codes = [finding["code"] for finding in report["comparisons"][0]["findings"]]
    ok = code == 0 and codes == ["nothing_changed"] and took_s < QUICK_S
    print(f"{'documents alone':34} exit code {code}, {', '.join(codes)}, {took_s:.1f} s")
    return ok


def environments(project, folder):
    text = HELPER.format(count=COUNT, comment="")
    sides = [
        environment_with(folder / name, f"__version__ = {version!r}\n{text}")
        for name, version in (("one", "1.0"), ("two", "2.0"))
    ]
    # the project's own would come first
    (project.folder / "helper.py").rename(folder / "helper.py")
    _, report, took_s = project.compare(*sides, "--time", "5")
    (folder / "helper.py").rename(project.folder / "helper.py")
    differences = report["comparisons"][0]["differences"]
    said = [f"{each['kind']} {each['what']} {each['a']} -> {each['b']}" for each in differences]
    ok = said == ["environment helper 1.0 -> 2.0"]
    print(f"{'two environments':34} {', '.join(said)}, {took_s:.1f} s")
    return ok


def looks(name, value):
    """How often some look at pairs that do not differ says that they do."""
    draw = Random(1)
    places = [count for count in range(1, MOST_PAIRS) if is_interim_analysis(count)]
    missed = 0
    for _ in range(SIMULATED):
        values = [value(draw) for _ in range(places[-1])]
        intervals = (interval_of(Pairs(ratios=values[:count]), 1) for count in places)
        missed += any(not each.low <= 0 <= each.high for each in intervals)
    share = missed / SIMULATED
    what = f"{len(places)} looks, {name}"
    print(
        f"{what:34} {share:.2%} of {SIMULATED:,} ever miss the median (at most {MOST_MISSED:.0%})"
    )
    return share <= MOST_MISSED


if __name__ == "__main__":
    sys.exit(main())
