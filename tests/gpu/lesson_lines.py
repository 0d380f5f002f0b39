"""Lines of verify.py that run lessons and read what they found: ceilings, points, partitions, claims."""

import json
import subprocess
import sys
import time
from pathlib import Path

from claims import table

GPULAB = (sys.executable, "-m", "gpulab")
LESSONS = (
    "preallocation",
    "memory_layout",
    "channels_last",
    "batched_matmul",
    "optimizer_step",
    "batch_size",
    "precision",
    "cache_footprint",
    "roofline_tour",
)


def run(folder, name, *arguments):
    """One run, headless; its result, and its table on stdout."""
    stem = Path(str(name)).stem
    out = folder / f"{stem}.json"
    command = [*GPULAB, "--run", str(name), "--device", "cuda:0", "--json", str(out), *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    print(done.stdout, flush=True)
    return done.returncode, json.loads(out.read_text())["runs"][0] if out.exists() else {}


def speedups(report, *more):
    """The comparisons of a run that have a speedup, in a line."""
    comparisons = [comparison for comparison in report["comparisons"] if comparison["speedup"]]
    if not more:
        return ", ".join(f"{comparison['variant']} {comparison['speedup']:.3g}x" for comparison in comparisons)
    return ", ".join(f"{comparison['speedup']:.3g}x {comparison['verdict']}" for comparison in comparisons)


def lessons(folder):
    """Each lesson at full size: its checks, its verdicts, both clocks."""
    for name in LESSONS:
        code, report = run(folder, name)
        variants = [variant for variant in report["variants"] if variant["status"] != "skipped"]
        fine = code == 0 and all(variant["status"] == "ok" and len(variant["clocks"]) == 2 for variant in variants)
        yield name, "measured, both clocks", speedups(report, "verdict")[:44] or str(code), fine


def ceilings(folder):
    """The ceilings of the device, twice: against its datasheet, kept for the runs after, and how steady they are."""
    calibrations = []
    for turn in ("first", "second"):
        out = folder / f"ceilings-{turn}.json"
        arguments = ["--calibrate", "--device", "cuda:0", "--json", str(out), "--plot", str(folder / "ceilings.png")]
        started = time.monotonic()
        done = subprocess.run([*GPULAB, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        print(done.stdout.decode(), flush=True)
        took = time.monotonic() - started
        yield f"--calibrate, {turn}", "exit 0, < 60 s", f"{took:.0f} s", done.returncode == 0 and took < 60
        measured = json.loads(out.read_text())["ceilings"]
        calibrations.append({(entry["roof"], entry["kind"], entry["source"]): entry for entry in measured})
    first, second = calibrations
    for roof, kind, least in (("device memory", "copy", 0.85), ("matrix", "bf16", 0.75)):
        measured = second[roof, kind, "measured"]["best"]
        sheet = second[roof, "" if roof == "device memory" else kind, "datasheet"]["best"]
        line = f"{measured:.4g} of {sheet:.4g}: {measured / sheet:.1%}"
        yield f"{roof} {kind} / datasheet", f"> {least:.0%}", line, measured > least * sheet
    # Not of the links: the smallest transfers are all latency.
    steady = {key: entry for key, entry in first.items() if entry["samples"] and "host" not in key[0]}
    apart = {key: abs(second[key]["best"] / entry["best"] - 1) for key, entry in steady.items()}
    worst = max(apart, key=apart.get)
    yield "two calibrations, furthest apart", "< 10 %", f"{' '.join(worst[:2])}: {apart[worst]:.1%}", apart[worst] < 0.1


def roofline(folder):
    """Points where theory puts them, the DRAM counter against declared bytes, and what each is bound by."""
    _, report = run(folder, "roofline_tour", "--plot", str(folder / "roofline_tour.png"))
    points = {variant["name"]: variant["roofline"] for variant in report["variants"]}
    line = f"at {report['ceilings']['at'][11:19]}, cached {report['ceilings']['cached']}"
    yield "ceilings of an earlier run are used", "cached True", line, report["ceilings"]["cached"]
    for name, bound in (("vector_add", "memory"), ("axpy", "memory"), ("large_matmul", "compute")):
        point = points[name]
        line = f"{point['bound']}, {point['fraction']:.1%}, bytes {point['work']}"
        yield f"roofline_tour {name}", bound, line, point["bound"] == bound and point["fraction"] < 1.05
    work = [points[name]["work"] for name in ("vector_add", "axpy")]
    yield "declared bytes against the DRAM counter", "counted", ", ".join(work), work == ["counted"] * 2
    bounds = bounds_of(run(folder, "batched_matmul")[1])
    yield "batched_matmul loop", "launch", str(bounds)[:44], bounds["loop"] == "launch"
    bounds = bounds_of(run(folder, "cache_footprint")[1])
    fits = bounds["eight_times"] == "memory" and bounds["quarter"] == "cache"
    yield "cache_footprint eight_times, quarter", "memory, cache", f"{bounds['eight_times']}, {bounds['quarter']}", fits


def bounds_of(report):
    return {variant["name"]: variant["roofline"]["bound"] for variant in report["variants"] if variant["roofline"]}


def goodputs_of(report):
    return {variant["name"]: variant["goodput"] for variant in report["variants"] if variant["goodput"]}


def partition(folder):
    """Where the time of an eager and of a graphed training step goes."""
    code, report = run(folder, "cuda_graphs", "--trace", str(folder / "trace.json"))
    variants = goodputs_of(report)
    for name, goodput in variants.items():
        parts = ", ".join(f"{part} {share:.0%}" for part, share in goodput["partition"].items() if share >= 0.01)
        fine = abs(sum(goodput["partition"].values()) - 1) < 1e-3 and goodput["reliable"]
        yield f"partition of {name}", "sums to 1, reliable", f"{goodput['goodput']:.0%}: {parts}"[:44], fine
    eager, graphed = (variants[name]["partition"]["launch-bound"] for name in list(variants)[:2])
    yield "launch-bound share, eager > graphed", "falls", f"{eager:.1%} > {graphed:.1%}", code == 0 and graphed < eager
    shares = {}
    for name in ("double_buffering", "sync_every_step", "input_pipeline", "training_step"):
        code, report = run(folder, name, "--time", "2", "--telemetry", "off", "--profile", "on")
        goodputs = shares[name] = goodputs_of(report)
        fine = all(abs(sum(goodput["partition"].values()) - 1) < 1e-3 for goodput in goodputs.values())
        fine = fine and all(goodput["reliable"] for goodput in goodputs.values())
        line = ", ".join(f"{variant} {goodput['goodput']:.0%}" for variant, goodput in goodputs.items())
        yield f"goodput of {name}", "sums to 1, reliable", line[:44], code == 0 and fine
    before, after = (shares["double_buffering"][name]["hidden"] or 0.0 for name in ("synchronized", "overlapped"))
    yield "copies hidden, synchronized < overlapped", "rises", f"{before:.0%} < {after:.0%}", before < after


def library(folder):
    """Every lesson in one command: each ends with a verdict, none is wrong."""
    out = folder / "all.json"
    short = ("--time", "2", "--telemetry", "off", "--profile", "off")  # so that it fits into ten minutes
    command = [*GPULAB, "--run", "all", "--device", "cuda:0", *short, "--json", str(out)]
    started = time.monotonic()
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    print(done.stdout, flush=True)
    runs = json.loads(out.read_text())["runs"]
    verdicts = [comparison["verdict"] for report in runs for comparison in report["comparisons"]]
    wrong, inconclusive = verdicts.count("wrong"), verdicts.count("inconclusive")
    line = f"{len(runs)} lessons in {time.monotonic() - started:.0f} s, exit {done.returncode}"
    yield "--run all", "exit 0", line, done.returncode == 0
    print("The claims of the sources:", *table(runs), sep="\n", flush=True)
    line = f"{wrong} wrong, {inconclusive} of {len(verdicts)} inconclusive"
    few = inconclusive <= 0.2 * len(verdicts)
    yield "verdicts", "none wrong, <= 20 % inconclusive", line, not wrong and few
    for report in runs:
        line = speedups(report) or (report["reason"] or {}).get("code", "")
        yield report["scenario"], report["claim"][:34], line[:44], report["exit_code"] == 0


def memory(folder):
    """A batch that the device cannot hold is reported, and is no failure."""
    code, report = run(folder, "batch_size", "--set", "width=64", "--set", "hidden=30000000", "--time", "3")
    statuses = [variant["status"] for variant in report["variants"]]
    fine = code == 0 and "out of memory" in statuses
    yield "batch_size until memory ends", "out of memory, exit 0", ", ".join(statuses[-3:]), fine
