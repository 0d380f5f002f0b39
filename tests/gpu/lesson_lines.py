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


def lessons(folder):
    """Each lesson at full size: its checks, its verdicts, both clocks."""
    for name in LESSONS:
        code, found = run(folder, name)
        variants = [one for one in found["variants"] if one["status"] != "skipped"]
        fine = code == 0 and all(one["status"] == "ok" and len(one["clocks"]) == 2 for one in variants)
        told = ", ".join(f"{one['speedup']:.3g}x {one['verdict']}" for one in found["comparisons"] if one["speedup"])
        yield name, "measured, both clocks", told[:44] or str(code), fine


def ceilings(folder):
    """The ceilings of the device, twice: against its datasheet, kept for the runs after, and how steady they are."""
    found = []
    for time_ in ("first", "second"):
        out = folder / f"ceilings-{time_}.json"
        arguments = ["--calibrate", "--device", "cuda:0", "--json", str(out), "--plot", str(folder / "ceilings.png")]
        started = time.monotonic()
        done = subprocess.run([*GPULAB, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        print(done.stdout.decode(), flush=True)
        took = time.monotonic() - started
        yield f"--calibrate, {time_}", "exit 0, < 60 s", f"{took:.0f} s", done.returncode == 0 and took < 60
        found.append(
            {(one["roof"], one["kind"], one["source"]): one for one in json.loads(out.read_text())["ceilings"]}
        )
    first, second = found
    for roof, kind, least in (("device memory", "copy", 0.85), ("matrix", "bf16", 0.75)):
        measured = second[roof, kind, "measured"]["best"]
        sheet = second[roof, "" if roof == "device memory" else kind, "datasheet"]["best"]
        told = f"{measured:.4g} of {sheet:.4g}: {measured / sheet:.1%}"
        yield f"{roof} {kind} / datasheet", f"> {least:.0%}", told, measured > least * sheet
    # Not of the links: the smallest transfers are all latency.
    steady = {key: one for key, one in first.items() if one["samples"] and "host" not in key[0]}
    apart = {key: abs(second[key]["best"] / one["best"] - 1) for key, one in steady.items()}
    worst = max(apart, key=apart.get)
    yield "two calibrations, furthest apart", "< 10 %", f"{' '.join(worst[:2])}: {apart[worst]:.1%}", apart[worst] < 0.1


def roofline(folder):
    """Points where theory puts them, the DRAM counter against declared bytes, and what each is bound by."""
    _, found = run(folder, "roofline_tour", "--plot", str(folder / "roofline_tour.png"))
    points = {one["name"]: one["roofline"] for one in found["variants"]}
    told = f"at {found['ceilings']['at'][11:19]}, cached {found['ceilings']['cached']}"
    yield "ceilings of an earlier run are used", "cached True", told, found["ceilings"]["cached"]
    for name, bound in (("vector_add", "memory"), ("axpy", "memory"), ("large_matmul", "compute")):
        point = points[name]
        told = f"{point['bound']}, {point['fraction']:.1%}, bytes {point['work']}"
        yield f"roofline_tour {name}", bound, told, point["bound"] == bound and point["fraction"] < 1.05
    work = [points[name]["work"] for name in ("vector_add", "axpy")]
    yield "declared bytes against the DRAM counter", "counted", ", ".join(work), work == ["counted"] * 2
    _, found = run(folder, "batched_matmul")
    bounds = {one["name"]: one["roofline"]["bound"] for one in found["variants"] if one["roofline"]}
    yield "batched_matmul loop", "launch", str(bounds)[:44], bounds["loop"] == "launch"
    _, found = run(folder, "cache_footprint")
    bounds = {one["name"]: one["roofline"]["bound"] for one in found["variants"]}
    fits = bounds["eight_times"] == "memory" and bounds["quarter"] == "cache"
    yield "cache_footprint eight_times, quarter", "memory, cache", f"{bounds['eight_times']}, {bounds['quarter']}", fits


def partition(folder):
    """Where the time of an eager and of a graphed training step goes."""
    code, found = run(folder, "cuda_graphs", "--trace", str(folder / "trace.json"))
    variants = {one["name"]: one["goodput"] for one in found["variants"] if one["goodput"]}
    for name, of in variants.items():
        parts = ", ".join(f"{part} {share:.0%}" for part, share in of["partition"].items() if share >= 0.01)
        fine = abs(sum(of["partition"].values()) - 1) < 1e-3 and of["reliable"]
        yield f"partition of {name}", "sums to 1, reliable", f"{of['goodput']:.0%}: {parts}"[:44], fine
    eager, graphed = (variants[name]["partition"]["launch-bound"] for name in list(variants)[:2])
    yield "launch-bound share, eager > graphed", "falls", f"{eager:.1%} > {graphed:.1%}", code == 0 and graphed < eager
    shares = {}
    for name in ("double_buffering", "sync_every_step", "input_pipeline", "training_step"):
        code, found = run(folder, name, "--time", "2", "--telemetry", "off", "--profile", "on")
        shares[name] = {one["name"]: one["goodput"] for one in found["variants"] if one["goodput"]}
        fine = all(abs(sum(one["partition"].values()) - 1) < 1e-3 and one["reliable"] for one in shares[name].values())
        told = ", ".join(f"{variant} {one['goodput']:.0%}" for variant, one in shares[name].items())
        yield f"goodput of {name}", "sums to 1, reliable", told[:44], code == 0 and fine
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
    verdicts = [one["verdict"] for found in runs for one in found["comparisons"]]
    wrong, unsure = verdicts.count("wrong"), verdicts.count("inconclusive")
    told = f"{len(runs)} lessons in {time.monotonic() - started:.0f} s, exit {done.returncode}"
    yield "--run all", "exit 0", told, done.returncode == 0
    print("The claims of the sources:", *table(runs), sep="\n", flush=True)
    told = f"{wrong} wrong, {unsure} of {len(verdicts)} inconclusive"
    yield "verdicts", "none wrong, <= 20 % inconclusive", told, not wrong and unsure <= 0.2 * len(verdicts)
    for found in runs:
        told = ", ".join(f"{one['variant']} {one['speedup']:.3g}x" for one in found["comparisons"] if one["speedup"])
        yield found["scenario"], found["claim"][:34], (told or found["reason"] or "")[:44], found["exit_code"] == 0


def memory(folder):
    """A batch that the device cannot hold is reported, and is no failure."""
    code, found = run(folder, "batch_size", "--set", "width=64", "--set", "hidden=30000000", "--time", "3")
    statuses = [one["status"] for one in found["variants"]]
    yield (
        "batch_size until memory ends",
        "out of memory, exit 0",
        ", ".join(statuses[-3:]),
        (code == 0 and "out of memory" in statuses),
    )
