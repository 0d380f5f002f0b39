"""Lines of verify.py that run lessons and read what they found: ceilings, points, partitions,
claims.
"""

import json
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from claims import rows_of, sentences
from commands import GPULAB, with_ends
from judging import Bounds, row, split_ceilings, within

STEPS = Path(__file__).parent / "steps"
HOST_APART = 0.3
"""What the host takes to queue something follows its other work, not the device."""


@dataclass(frozen=True)
class Place:
    """Where a line runs, and where its run files and JSON go."""

    folder: Path
    device: str


def run(place, name, *arguments):
    """One run, headless; its exit code and its result, and its table on stdout."""
    stem = Path(str(name)).stem
    out, run_file = (place.folder / f"{stem}{suffix}" for suffix in (".json", ".jsonl"))
    for path in (out, run_file):
        path.unlink(missing_ok=True)
    command = [*GPULAB, "--run", str(name), "--device", place.device, "--json", str(out)]
    command += ["--output", str(run_file), *arguments]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    print(done.stdout, flush=True)
    return done.returncode, with_ends(
        json.loads(out.read_text())["runs"][0]
    ) if out.exists() else {}


def lessons(place, names, shares):
    """Every lesson: a verdict, none wrong; its source's claims; and the rows of `shares(name,
    report)`.
    """
    for name in names:
        code, report = run(place, name, "--time", "5", "--telemetry", "off", "--profile", "off")
        yield from lesson_rows(name, code, report)
        if report:
            yield from shares(name, report)


def lesson_rows(name, code, report):
    """Of one lesson: that it ended with a verdict, none wrong; then the claims of its source."""
    if not report:
        yield row(name, "a result", f"exit code {code}", False)
        return
    counts = Counter(comparison["verdict"] for comparison in report["comparisons"])
    line = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    fine = code == 0 and not {"wrong", "invalid"} & counts.keys()
    yield row(name, "exit 0, none wrong or invalid", (line or f"exit code {code}")[:52], fine)
    yield from rows_of(report)


def copies_per_s(report):
    """The measured ceiling of copies in device memory, bytes/s."""
    ceilings = report["ceilings"]["ceilings"]
    return next(
        entry["best"]
        for entry in ceilings
        if (entry["roof"], entry["kind"], entry["source"]) == ("device memory", "copy", "measured")
    )


def ceilings(place):
    """The ceilings of the device, twice: against its datasheet, kept for the runs after, and how
    steady they are.
    """
    calibrations = []
    for turn in ("first", "second"):
        out = place.folder / f"ceilings-{turn}.json"
        picture = place.folder / "ceilings.png"
        arguments = ["--calibrate", "--device", place.device]
        arguments += ["--json", str(out), "--plot", str(picture)]
        started = time.monotonic()
        done = subprocess.run(
            [*GPULAB, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        print(done.stdout.decode(), flush=True)
        took = time.monotonic() - started
        yield row(
            f"--calibrate, {turn}",
            "exit 0, < 60 s",
            f"{took:.0f} s",
            done.returncode == 0 and took < 60,
        )
        measured = json.loads(out.read_text())["ceilings"]
        calibrations.append(
            {(entry["roof"], entry["kind"], entry["source"]): entry for entry in measured}
        )
    first, second = calibrations
    for roof, kind, least in (("device memory", "copy", 0.85), ("matrix", "bf16", 0.75)):
        measured = second[roof, kind, "measured"]["best"]
        sheet = second[roof, "" if roof == "device memory" else kind, "datasheet"]["best"]
        yield within(f"{roof} {kind} of its datasheet", Bounds(least, 1.05), measured / sheet, "%")
    steady = {key: entry["best"] for key, entry in first.items() if entry["samples"]}
    for title, apart, most in zip(
        ("device", "host"),
        split_ceilings(steady, {key: entry["best"] for key, entry in second.items()}),
        (0.1, HOST_APART),
        strict=True,
    ):
        worst = max(apart, key=apart.get)
        line = f"{' '.join(worst[:2])}: {apart[worst]:.1%}"
        yield row(
            f"two calibrations of the {title}, furthest apart",
            f"< {most:.0%}",
            line,
            apart[worst] < most,
        )


def roofline(place):
    """Points where theory puts them, the DRAM counter against declared bytes, and what each is
    bound by.
    """
    picture = place.folder / "roofline_tour.png"
    _, report = run(place, "roofline_tour", "--profile", "all", "--plot", str(picture))
    variants = {variant["name"]: variant for variant in report["variants"]}
    line = f"at {report['ceilings']['at'][11:19]}, cached {report['ceilings']['cached']}"
    yield row(
        "ceilings of an earlier run are used", "cached True", line, report["ceilings"]["cached"]
    )
    for name, bound in (("vector_add", "memory"), ("axpy", "memory"), ("large_matmul", "compute")):
        point = variants[name]["roofline"]
        line = f"{point['bound']}, {point['fraction']:.1%}"
        fits = Bounds(0.7, 1.05).holds(point["fraction"])
        yield row(
            f"roofline_tour {name}", f"{bound}, 70 to 105 %", line, point["bound"] == bound and fits
        )
    for name in ("vector_add", "axpy"):
        yield counted_row(name, variants[name])
    bounds = bounds_of(run(place, "batched_matmul")[1])
    yield row("batched_matmul loop", "launch", str(bounds)[:52], bounds["loop"] == "launch")
    bounds = bounds_of(run(place, "cache_footprint")[1])
    fits = bounds["eight_times"] == "memory" and bounds["half"] == "cache"
    line = f"{bounds['eight_times']}, {bounds['half']}"
    yield row("cache_footprint eight_times, half", "memory, cache", line, fits)


def counted_row(name, variant):
    title = f"DRAM counter over declared bytes, {name}"
    counted = variant["roofline"]["bytes_counted"]
    if counted is None:
        return row(title, "a count", "none", False)
    return within(title, Bounds(0.95, 1.1), counted / variant["bytes"], "%")


def bounds_of(report):
    return {
        variant["name"]: variant["roofline"]["bound"]
        for variant in report["variants"]
        if variant["roofline"]
    }


def goodputs_of(report):
    """Of the variants with a profile; by its marks alone a variant has a goodput without a number."""
    return {
        variant["name"]: variant["goodput"]
        for variant in report["variants"]
        if variant["goodput"] and variant["goodput"]["goodput"] is not None
    }


TIMES_DIFFER = {"goodput_uncertain", "busy_exceeds_step"}
"""Why a goodput is unreliable where the same step takes another time elsewhere: alone, say."""


def adds_up(goodput):
    """The parts are the whole step, and the goodput is reliable, or claims nothing as the step took
    another time elsewhere.
    """
    if abs(sum(goodput["partition"].values()) - 1) >= 1e-3:
        return False
    reasons = {reason["code"] for reason in goodput["reasons"]}
    return goodput["reliable"] or (bool(reasons) and reasons <= TIMES_DIFFER)


def share(goodput):
    return f"{goodput['goodput']:.0%}{'' if goodput['reliable'] else '?'}"


PARTITIONS = {
    "double_buffering": (),
    "sync_every_step": (),
    "training_step": (),
    "input_pipeline": (),
}
SUMS = "sums to 1, reliable or says why"


def partition(place):
    """Where the time of an eager and of a graphed training step goes."""
    code, report = run(place, "cuda_graphs", "--trace", str(place.folder / "trace.json"))
    variants = goodputs_of(report)
    for name, goodput in variants.items():
        parts = ", ".join(
            f"{part} {part_of_step:.0%}"
            for part, part_of_step in goodput["partition"].items()
            if part_of_step >= 0.01
        )
        line = f"{share(goodput)}: {parts}"
        yield row(f"partition of {name}", SUMS, line[:52], adds_up(goodput))
    eager, graphed = (variants[name]["partition"]["launch-bound"] for name in list(variants)[:2])
    line = f"{eager:.1%} > {graphed:.1%}"
    yield row("launch-bound share, eager > graphed", "falls", line, code == 0 and graphed < eager)
    for name, arguments in PARTITIONS.items():
        options = ("--time", "2", "--telemetry", "off", "--profile", "all", *arguments)
        code, report = run(place, name, *options)
        goodputs = goodputs_of(report)
        line = ", ".join(f"{variant} {share(goodput)}" for variant, goodput in goodputs.items())
        fine = code == 0 and bool(goodputs) and all(map(adds_up, goodputs.values()))
        yield row(f"goodput of {name}", SUMS, line[:52], fine)
        if name == "double_buffering":
            yield hidden_row(goodputs)


def hidden_row(goodputs):
    before, after = (goodputs[name]["hidden"] or 0.0 for name in ("synchronized", "overlapped"))
    line = f"{before:.0%} < {after:.0%}"
    return row("copies hidden, synchronized < overlapped", "rises", line, before < after)


PARTS = 6
"""Into which the lessons are divided: a line ends within its limit, and one that is cut off loses a
part.
"""


def library(place, part):
    """A part of the lessons: each ends with a verdict, none is wrong; then the claims of their
    sources.
    """
    listed = json.loads(
        subprocess.run([*GPULAB, "--list", "--json"], check=True, capture_output=True).stdout
    )
    runs = []
    for name in [entry["name"] for entry in listed][part::PARTS]:
        code, report = run(place, name, "--telemetry", "off", "--profile", "off")
        yield from lesson_rows(name, code, report)
        if report:
            runs.append(report)
    verdicts = [comparison["verdict"] for report in runs for comparison in report["comparisons"]]
    inconclusive = verdicts.count("inconclusive")
    line = f"{inconclusive} of {len(verdicts)}"
    yield row(
        f"inconclusive of part {part + 1}", "<= 40 %", line, inconclusive <= 0.4 * len(verdicts)
    )
    print(
        "Where a source's claim is not what this device did:",
        *map("\n".join, map(sentences, runs)),
        sep="\n",
    )


def memory(place):
    """A batch that the device cannot hold is reported, and is no failure."""
    code, report = run(
        place, "batch_size", "--set", "width=16", "--set", "hidden=20000000", "--quick"
    )
    statuses = [variant["status"] for variant in report["variants"]]
    fine = code == 0 and "out of memory" in statuses
    yield row(
        "batch_size until memory ends", "out of memory, exit 0", ", ".join(statuses[-3:]), fine
    )
