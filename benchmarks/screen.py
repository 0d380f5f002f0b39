"""What the screen costs: its first frame, its bytes, its keys under load, and what it does to a
time.

    # all without one; --help lists them
    python benchmarks/screen.py [startup|bytes|keys|observer|all]

Every part prints what it measured beside the limit that is set for it. The first two take a minute,
keys two, and the observer effect half a minute a pair. What a day of events takes: fold.py.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from math import exp, log
from pathlib import Path
from statistics import mean, median

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from commands import GPULAB
from lab_in_a_terminal import DOWN, ENTER, UP, Terminal, lab_over
from recorded import run_file

import gpulab
from gpulab.session.run import FileSource
from gpulab.stats.statistics import FEWEST, median_interval

RECORDED = "precision-h200"
SMALL, LARGE = (80, 24), (120, 40)
STARTS, MOVES, REST_S, KEYS, VISITS, VISIT_S, EDGE_S = 10, 8, 5.0, 200, 3, 1.3, 2
RUN_LIMIT_S = 300.0
STARTUP_X, RUN_BYTES_S = 1.3, 30_000
CPU, KEY_S, EFFECT = 0.05, 0.1, 0.01
BARE = """
from textual.app import App
from textual.widgets import Footer, OptionList
class Bare(App):
    BINDINGS = [("q", "quit", "quit")]
    animation_level = "none"
    def compose(self):
        yield OptionList(*(f"lesson {number}  what it teaches in a line" for number in range(57)))
        yield Footer()
Bare().run()
"""
COMPUTE = '''
"""Compute-bound: a product that fits the cache."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("benchmark")
@scenario.variant
def product(lab):
    """One product."""
    a, b, out = torch.randn(128, 128), torch.randn(128, 128), torch.empty(128, 128)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b), output=out)
@scenario.variant
def again(lab):
    """The same."""
    return product(lab)
'''


def lab(*arguments):
    return [*GPULAB, *arguments]


def startup(options, env):
    """exec to the first complete frame, in turn with a bare Textual app"""
    bare = options.folder / "bare.py"
    bare.write_text(BARE)
    commands = lab(), [sys.executable, str(bare)]
    pairs = [[first_frame_s(command, env) for command in commands] for _ in range(STARTS + 1)]
    del pairs[0]  # in which modules were compiled
    lab_s, bare_s = (median(side) for side in zip(*pairs, strict=True))
    ratio = median(of_lab / of_bare for of_lab, of_bare in pairs)
    yield "exec to first frame", f"{lab_s * 1e3:.0f} ms", "", None
    yield "exec to first frame, bare Textual app", f"{bare_s * 1e3:.0f} ms", "", None
    yield "median of the ratios", f"{ratio:.2f}x", f"{STARTUP_X}x", ratio <= STARTUP_X


def first_frame_s(command, env):
    terminal = Terminal(command, size=SMALL, env=env)
    took = terminal.first_frame_s()
    terminal.settle()
    terminal.close()
    return took


def sizes(options, env):
    """bytes of the first screen, of a key, at rest and during a recorded run, and the CPU of the
    face in it
    """
    bare = options.folder / "bare.py"
    bare.write_text(BARE)
    for size in (SMALL, LARGE):
        named = f"{size[0]}x{size[1]}"
        of_bare = Terminal([sys.executable, str(bare)], size=size, env=env)
        most, most_of_move = first_and_move(of_bare)
        of_bare.close()
        terminal = Terminal(lab(), size=size, env=env)
        first, move = first_and_move(terminal)
        yield f"first screen, {named}", f"{first:,} bytes", f"{most:,}", first <= most
        yield f"one Down, {named}", f"{move:,} bytes", f"{most_of_move:,}", move <= most_of_move
        if size == SMALL:
            terminal.close()
    before = terminal.total
    terminal.pump(REST_S)
    rest = (terminal.total - before) / REST_S
    yield "at rest", f"{rest:,.0f} bytes/s", "0", rest == 0
    terminal.close()
    yield from during_a_run(run_file(RECORDED, options.folder), env)


def first_and_move(terminal):
    """Bytes of the first screen, and of a cursor key in the middle."""
    terminal.first_frame_s()
    terminal.settle(1.0)
    first = terminal.total
    moves = []
    for _ in range(MOVES):
        terminal.press(DOWN)
        moves.append(terminal.settle())
    return first, int(median(moves))


def during_a_run(path, env):
    events = FileSource(path).take()
    run_s = events[-1].t - events[0].t
    terminal = lab_over("paced", path, size=LARGE, env=env)
    cpu_s, first, pressed = cpu_clock(terminal), len(terminal.received), time.perf_counter()
    terminal.press(b"r")
    while (left := pressed + run_s + 0.5 - time.perf_counter()) > 0:
        terminal.pump(left)
    cpu = cpu_s() / (time.perf_counter() - pressed)
    seconds = [0] * (int(run_s) + 2)
    for when, count in terminal.received[first:]:
        seconds[int(when - pressed)] += count
    terminal.close()
    begin, between, end = (
        sum(seconds[:EDGE_S]),
        seconds[EDGE_S : int(run_s) - EDGE_S],
        sum(seconds[-EDGE_S - 2 :]),
    )
    rate = mean(between)
    yield (
        f"a run of {run_s:.0f} s at its pace, 120x40",
        f"{rate:,.0f} bytes/s",
        f"{RUN_BYTES_S:,}",
        rate <= RUN_BYTES_S,
    )
    yield f"but for its first and last {EDGE_S} s, with", f"{begin:,} and {end:,} bytes", "", None
    yield "CPU of the face during it", f"{cpu:.1%} of a core", f"{CPU:.0%}", cpu <= CPU


def cpu_clock(terminal):
    """A function that gives the CPU seconds of a terminal's program since now."""
    face = psutil.Process(terminal.pid)
    before = sum(face.cpu_times()[:2])
    return lambda: sum(face.cpu_times()[:2]) - before


def keys(options, env):
    """key to response while 10,000 events a second come in"""
    terminal = lab_over("flood", run_file(RECORDED, options.folder), size=LARGE, env=env)
    terminal.press(b"r")
    terminal.pump(3.0)
    cpu_s, started = cpu_clock(terminal), time.perf_counter()
    for name, pair in (("Down, Up", (DOWN, UP)), ("1, 2", (b"2", b"1"))):
        shown = told_apart(terminal, pair)
        turns = islice(cycle((pair, pair[::-1])), KEYS)
        firsts, halves = zip(*(response_s(terminal, shown, *turn) for turn in turns), strict=True)
        p50, p99 = percentiles(firsts)
        measured = f"p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms"
        yield (
            f"{name}: first cells that show it",
            measured,
            f"p99 {KEY_S * 1e3:.0f} ms",
            p99 <= KEY_S,
        )
        p50, p99 = percentiles(halves)
        yield f"{name}: half of them", f"p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms", "", None
    cpu = cpu_s() / (time.perf_counter() - started)
    yield "CPU of the face, which makes the events too", f"{cpu:.0%} of a core", "", None
    terminal.close()


def percentiles(times):
    ordered = sorted(times)
    return median(ordered), ordered[-(-99 * len(ordered) // 100) - 1]


def told_apart(terminal, pair):
    """By key the cells that tell that it was the last of the two: alike at its every visit, and
    unlike the other's.
    """
    visits = {key: [] for key in pair}
    for key in pair * VISITS:
        terminal.press(key)
        terminal.pump(VISIT_S)
        visits[key].append(terminal.cells.cells.copy())
    one, other = (list(zip(*visits[key], strict=True)) for key in pair)
    steady = [
        len(set(a)) == len(set(b)) == 1 and a[0] != b[0] for a, b in zip(one, other, strict=True)
    ]
    if not any(steady):
        raise RuntimeError(f"{pair} change nothing:\n{terminal.cells.text}")
    return {
        key: {place: visits[key][0][place] for place, tells in enumerate(steady) if tells}
        for key in pair
    }


def response_s(terminal, shown, key, other):
    """Seconds from a key to the first of its cells, and to half of them, but for those that the run
    has changed.
    """
    terminal.pump(random.uniform(0.05, 0.3))  # ticks come at any time
    cells = terminal.cells
    for place in [place for place, cell in shown[other].items() if cells.cells[place] != cell]:
        del shown[key][place], shown[other][place]
    expected = shown[key]

    def share():
        return sum(cells.cells[place] == cell for place, cell in expected.items()) / len(expected)

    pressed = time.perf_counter()
    terminal.press(key)
    first = terminal.wait(f"a sign of {key}", share)
    half = first if share() >= 0.5 else terminal.wait(f"half of {key}", lambda: share() >= 0.5)
    return first - pressed, half - pressed


def observer(options, env):
    """the times of a scenario with each observer over those without it, in turn: the app over
    headless, and telemetry on over off
    """
    compute = options.folder / "compute.py"
    compute.write_text(COMPUTE)
    name = options.scenario
    own, named = ([str(compute)], str(compute)) if name == "compute" else ([], name)
    flags = ["--device", "cpu", "--time", str(options.time), "--profile", "off"]
    ways = {
        "no telemetry": (headless, named, [*flags, "--telemetry", "off"]),
        "headless": (headless, named, flags),
        "app": (in_the_app, name, [*own, *flags]),
    }
    headless(named, flags, env)  # which measures the ceilings for all that follow
    ratios = {}
    for number in range(options.pairs):
        order = sorted(ways, reverse=bool(number % 2))
        times = {way: ways[way][0](*ways[way][1:], env) for way in order}
        for variant in times["headless"]:
            for of, over in (("app", "headless"), ("headless", "no telemetry")):
                ratio = times[of][variant] / times[over][variant]
                ratios.setdefault((variant, of, over), []).append(log(ratio))
    for (variant, of, over), logarithms in ratios.items():
        measured = (
            f"{exp(median(logarithms)):.4f}, {len(logarithms)} pairs of {FEWEST} for an interval"
        )
        limit, held = f"±{EFFECT:.0%}", None
        if interval := median_interval(logarithms):
            middle, low, high = exp(interval.median), exp(interval.low), exp(interval.high)
            measured = f"{middle:.4f}, 99 % interval {low:.4f} to {high:.4f}"
            within = low >= 1 - EFFECT and high <= 1 + EFFECT
            beyond = low > 1 + EFFECT or high < 1 - EFFECT
            held = within if within or beyond else None
            limit += "  undecided: more pairs" * (held is None)
        yield f"{name}, {variant}: {of} / {over}", measured, limit, held


def headless(name, flags, env):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.jsonl"
        subprocess.run(
            lab("--run", name, *flags, "--output", str(file)),
            env=env,
            check=False,
            capture_output=True,
        )
        return times_of(file)


def in_the_app(name, flags, env):
    runs = Path(env["XDG_STATE_HOME"]) / "gpulab" / "runs"
    before = set(runs.glob("*.jsonl"))
    terminal = Terminal(lab(*flags), size=LARGE, env=env)
    terminal.first_frame_s()
    terminal.settle()
    for key in (b"/", name.encode(), ENTER, b"r"):
        terminal.press(key)
        terminal.pump(0.5)
    pressed = time.monotonic()
    while not any(has_ended(file) for file in set(runs.glob("*.jsonl")) - before):
        terminal.pump(0.5)
        if time.monotonic() > pressed + RUN_LIMIT_S:
            raise RuntimeError(f"the run never ended:\n{terminal.cells.text}")
    terminal.settle()
    terminal.close()
    (file,) = set(runs.glob("*.jsonl")) - before
    return times_of(file)


def has_ended(file):
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - 200))
        return b'"RunEnded"' in stream.read()


def times_of(file):
    return {
        variant.name: variant.time_s.value
        for variant in gpulab.load(file).variants
        if variant.time_s
    }


PARTS = {"startup": startup, "bytes": sizes, "keys": keys, "observer": observer}


def show(part, options, env):
    """One table: its rows are (what, measured, limit, whether it holds), printed as they come."""
    print(f"\n{part.__doc__}\n  {'what':<46}{'measured':<44}limit", flush=True)
    for what, measured, limit, held in part(options, env):
        judged = {None: "", True: "  held", False: "  MISSED"}[held]
        print(f"  {what:<46}{measured:<44}{limit}{judged}".rstrip(), flush=True)


def environment(folder):
    """That of a terminal on this machine, with modules compiled also where this machine keeps
    none.
    """
    hidden = ("SSH_CONNECTION", "SSH_TTY", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")
    own = {
        "XDG_STATE_HOME": str(folder),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "LC_ALL": "C.UTF-8",
    }
    return {name: value for name, value in os.environ.items() if name not in hidden} | own


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.set_defaults(pairs=10, time=3.0, scenario="batched_matmul")
    parts = parser.add_subparsers(dest="part", metavar="PART")
    add = {
        name: parts.add_parser(name, help=part.__doc__).add_argument for name, part in PARTS.items()
    }
    parts.add_parser("all", help="all of them, one after the other; so too without a part")
    add["observer"]("--pairs", type=int, default=10, help="runs of each of the two (%(default)s)")
    add["observer"](
        "--time", type=float, default=3.0, help="that of each run, in seconds (%(default)g)"
    )
    of = "one that ships, or compute: a product that fits the cache (%(default)s)"
    add["observer"]("--scenario", default="batched_matmul", help=of)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        for name in PARTS if options.part in (None, "all") else [options.part]:
            show(PARTS[name], options, environment(options.folder))


if __name__ == "__main__":
    main()
