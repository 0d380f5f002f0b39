"""Lines of verify.py on whether verdicts may be believed: same against same, alone, other tools,
waits, variance.
"""

import json
import subprocess
import sys
from pathlib import Path

from judging import Bounds, heads_where_it_differs, points, row, within
from lesson_lines import STEPS, run
from pair_runs import FOLDER as PAIRS
from pair_runs import LIKE
from stages import default_run, judgements, lines

from gpulab import Verdict, load

HERE = Path(__file__).parent
SCENARIOS = HERE.parents[1] / "scenarios"
ALONE = Bounds(0.97, 1.03)
"""Of the time alone over the interleaved one, of a step of 20 us on a device that is idle
otherwise.
"""
TOOLS = {
    "Timer": Bounds(0.98, 1.02),
    "do_bench": Bounds(0.97, 1.03),
    "CUDA graph": Bounds(0.97, 1.03),
}
"""Of the lab's time over another tool's."""
TELLING = Bounds(0.9, 1.1)
"""An interval that is wider says nothing of same against same."""
BOUND_BY = {"small_ops": "launches", "memory_bound": "memory", "compute_bound": "arithmetic"}
GOODPUT = (
    ("batched_matmul", "loop"),
    ("batched_matmul", "bmm"),
    ("cuda_graphs", "eager"),
    ("cuda_graphs", "graphed"),
    ("cache_footprint", "half"),
)
POINTS = 5


def side_stream(place):
    """Work on a side stream that is not joined is invalid; joined it is like any other."""
    _, report = run(
        place, STEPS / "side_stream.py", "--time", "5", "--telemetry", "off", "--profile", "off"
    )
    statuses = {variant["name"]: variant for variant in report["variants"]}
    joined, not_joined = statuses["joined"], statuses["not_joined"]
    yield row("a side stream that is joined", "ok", joined["status"], joined["status"] == "ok")
    code = (not_joined["reason"] or {}).get("code", "")
    line = f"{not_joined['status']} {code}"
    yield row(
        "a side stream that is not joined", "invalid", line, not_joined["status"] == "invalid"
    )


def stages(place):
    """A default run's seconds by stage, to its verdict and to its end."""
    seconds = default_run("batched_matmul", place.device)
    print(*lines(seconds), sep="\n", flush=True)
    for name, limit_s, measured_s, holds in judgements("batched_matmul", place.device, seconds):
        line = (
            "none"
            if measured_s is None
            else f"{measured_s:.1f} s, of which timed {seconds.timed:.1f} s"
        )
        yield row(f"default batched_matmul to its {name}", f"<= {limit_s:.0f} s", line, holds)


def same_against_same(place):
    """A/A of steps bound by launches, memory and arithmetic, and 5 % that are there."""
    for kind, bound in BOUND_BY.items():
        code, report = run(place, PAIRS / f"{kind}.py", "--telemetry", "off", "--profile", "off")
        yield from (
            same_rows(report, bound)
            if report
            else [row(f"A/A, {bound}", "a result", f"exit {code}", False)]
        )


def same_rows(report, bound):
    entries = {comparison["variant"]: comparison for comparison in report["comparisons"]}
    for name, entry in {"control": report["control"], **entries}.items():
        if name not in LIKE and name != "slower":
            continue
        interval = (
            ""
            if entry["low"] is None
            else f" {entry['speedup']:.4f} [{entry['low']:.4f}, {entry['high']:.4f}]"
        )
        if name == "slower":
            fine, expected = entry["verdict"] == "slower", "slower"
        else:
            fine = entry["verdict"] not in ("faster", "slower") and None not in (
                entry["low"],
                entry["high"],
            )
            fine = fine and all(map(TELLING.holds, (entry["low"], entry["high"])))
            expected = "same, or within 10 %"
        yield row(f"A/A, {bound}: {name}", expected, f"{entry['verdict']}{interval}", fine)


def interleaved(place):
    """A step of 20 us is as long among others as alone."""
    _, report = run(place, STEPS / "twenty_us.py", "--profile", "off")
    variants = {variant["name"]: variant for variant in report["variants"]}
    for name in ("small", "twin"):
        among_s, alone_s = (
            variants[name]["time_s"]["value"],
            variants[name]["solo_run"]["time_s"]["value"],
        )
        line = f"{alone_s * 1e6:.1f} us alone, {among_s * 1e6:.1f} us: {alone_s / among_s:.3f}"
        yield row(
            f"alone over interleaved, {name}", "0.97 to 1.03", line, ALONE.holds(alone_s / among_s)
        )


def power_cap(place):
    """Products that the power cap holds back: both speedups are shown, the sustained one first
    where it is another.
    """
    _, report = run(place, "precision", "--profile", "off")
    clocks = {
        variant["name"]: (variant["solo_run"] or {}).get("clocks") for variant in report["variants"]
    }
    for comparison in report["comparisons"]:
        sustained = comparison.get("sustained")
        if comparison["speedup"] is None:
            continue
        shown = f"{comparison['speedup']:.2f}x interleaved, " + (
            f"{sustained['speedup']:.2f}x sustained" if sustained else "none sustained"
        )
        heads = (sustained or {}).get("heads")
        line = (
            f"{shown}, {heads['code'] if heads else 'alike'}, clocks "
            f"{clocks[comparison['variant']]}"
        )
        fine = heads_where_it_differs(comparison)
        yield row(
            f"precision {comparison['variant']}, sustained",
            "shown, first where it differs",
            line,
            fine,
        )


def cross_check(place):
    """The lab's clocks beside other tools', in turn in one process."""
    command = [sys.executable, str(HERE / "beside_other_tools.py"), "--device", place.device]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in done.stdout:
        entry = json.loads(line)
        title = f"{entry['step']} beside {entry['tool']}"
        bounds = TOOLS[entry["tool"]]
        ratio = entry["ratio"]
        line = f"{ratio:.4f} ({entry['our_s'] * 1e6:.1f} us, {entry['their_s'] * 1e6:.1f} us)"
        yield row(title, f"{bounds.low} to {bounds.high}", line, bounds.holds(ratio))
    if done.wait():
        yield row("beside other tools", "exit 0", f"exit {done.returncode}", False)


def goodput(place):
    """Step goodput against the kernels by another tool than the lab's, over the unprofiled step of
    the same run.

    A host whose speed drifts takes other times for the same launches half a minute later.
    """
    reports = {}
    for name, variant in GOODPUT:
        command = [sys.executable, str(HERE / "kernels_per_step.py")]
        command += [str(SCENARIOS / f"{name}.py"), variant, "--device", place.device]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        kernels_s = json.loads(done.stdout)["kernels_s"]
        if name not in reports:
            reports[name] = run(
                place, name, "--time", "5", "--telemetry", "off", "--profile", "all"
            )[1]
        measured = next(entry for entry in reports[name]["variants"] if entry["name"] == variant)
        share = min(1.0, kernels_s / measured["clocks_s"]["wall"])
        yield goodput_row(f"goodput of {name} {variant}", share, measured["goodput"])


def goodput_row(title, share, entry):
    """A goodput that is said to be unreliable claims nothing; one that is reliable is within five
    points.
    """
    if entry is None or entry["goodput"] is None:
        return row(title, f"{share:.0%} +- {POINTS}", "none", False)
    if not entry["reliable"]:
        line = f"{entry['goodput']:.0%}, said to be unreliable"
        return row(title, f"{share:.0%} +- {POINTS}, or unreliable", line, True)
    return within(title, points(share, POINTS), entry["goodput"], "%")


def variance(place):
    """Where the variance comes from here, in a few minutes: a short form of
    benchmarks/variance.py.
    """
    folder = place.folder / "variance"
    kinds = ("small_ops", "memory_bound", "compute_bound")
    command = [sys.executable, str(HERE.parent / "variance.py"), str(folder), "--minutes", "3.5"]
    command += ["--device", place.device, "--kinds", ",".join(kinds), "--time", "4"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    measured = [line for line in done.stdout.splitlines() if line.count("%") > 2]
    yield row(
        "the split of the variance",
        f"{2 * len(kinds)} lines",
        f"{len(measured)} lines, above",
        len(measured) == 6,
    )
    runs = [load(path) for path in sorted(folder.glob("*.jsonl"))]
    invalid = sum(
        any(comparison.verdict == Verdict.INVALID for comparison in run.comparisons) for run in runs
    )
    yield row("runs of it", "none invalid", f"{invalid} of {len(runs)} invalid", not invalid)
