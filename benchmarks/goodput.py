"""What the lessons on goodput promise of a CPU, at full size: each line with its bound, and whether
it holds.

python benchmarks/goodput.py [sync] [small] [pipeline] [training]      # all without an
argument; a quiet machine

Each measures for 40 s, so that a shared machine can tell 2 %.
"""

import sys

from commands import result_of


def run(name):
    """The result of one lesson by its command."""
    return result_of(name, "--device", "cpu", "--time", "40")


def text(comparison):
    interval = f"[{comparison['low']:.3f}, {comparison['high']:.3f}]"
    return (
        f"{comparison['variant']} {comparison['speedup']:.3f}x {interval} {comparison['verdict']}"
    )


def comparison_of(report, variant):
    return next(
        comparison for comparison in report["comparisons"] if comparison["variant"] == variant
    )


def reconciled(name, report):
    """Step goodput of every variant with the largest difference of another way to know it."""
    for variant in report["variants"]:
        goodput = variant["goodput"]
        if goodput and goodput["goodput"] is not None:
            line = (
                f"{goodput['goodput']:.1%} of {1e3 * goodput['step_s']:.3g} ms, "
                f"+-{goodput['uncertainty']:.1%}"
            )
            yield f"{name}, goodput of {variant['name']}", "+-5 %", line, goodput["reliable"]


def sync():
    (comparison,) = run("sync_every_step")["comparisons"]
    yield "sync_every_step", "same", text(comparison), comparison["verdict"] == "same"


def small():
    report = run("small_kernels")
    compiled = comparison_of(report, "compiled")
    first_s = next(
        variant["first_step_s"] for variant in report["variants"] if variant["name"] == "compiled"
    )
    line = f"{text(compiled)}; first step, which compiles, {first_s:.1f} s"
    yield "small_kernels", "> 2x", line, compiled["low"] > 2


def pipeline():
    """As long as the useful work of an item takes what it took, items per second follow goodput."""
    report = run("input_pipeline")
    shares = {
        variant["name"]: variant["goodput"] for variant in report["variants"] if variant["goodput"]
    }
    waits = [shares[name]["partition"]["data_wait"] for name in ("workers_0", "workers_n")]
    yield from reconciled("input_pipeline", report)
    yield (
        "input_pipeline, data wait",
        "falls",
        f"{waits[0]:.1%} > {waits[1]:.1%}",
        waits[1] < waits[0],
    )
    predicted = shares["workers_n"]["goodput"] / shares["workers_0"]["goodput"]
    comparison = comparison_of(report, "workers_n")
    off = comparison["speedup"] / predicted - 1
    line = f"goodput predicts {predicted:.3f}x, {text(comparison)}: {off:+.1%}"
    yield "input_pipeline, items per second", "within 10 %", line, abs(off) <= 0.1


def training():
    report = run("training_step")
    yield from reconciled("training_step", report)
    for comparison in report["comparisons"]:
        fine = comparison["verdict"] not in ("wrong", "invalid") and comparison["low"] is not None
        yield f"training_step, {comparison['variant']}", "an interval", text(comparison), fine
    together = report["together"]
    interval = f"[{together['low']:.3f}, {together['high']:.3f}]"
    line = f"product {together['product']:.3f}x, together {together['speedup']:.3f}x {interval}"
    yield "training_step, product and total", "faster", line, together["low"] > 1


LINES = {function.__name__: function for function in (sync, small, pipeline, training)}


def main():
    held = True
    for name in sys.argv[1:] or LINES:
        for title, expected, measured, holds in LINES[name]():
            print(f"{title:42} {expected:13} {measured}  {'yes' if holds else 'NO'}", flush=True)
            held = held and holds
    return not held


if __name__ == "__main__":
    sys.exit(main())
