"""200 near-equal candidates of a step with drift injected: what `gpulab.tune` chooses, and what the
usual way does.

    python benchmarks/tuning.py [--trials 20] [--time 8] [--spread 0.03]

Each candidate computes as many sines as its share of work says (known, within 3 % of one another),
on a machine that is made to drift: every step computes more or less by three waves of 3 %, of a
second to a minute, and more by bursts of 20 %. The usual way measures candidate after candidate,
each in 20 blocks, and takes the least median. The regret is the work of the one chosen over the
least.
"""

import argparse
import os
import tempfile
from pathlib import Path
from random import Random

from commands import result_of

SCENARIO = '''
"""Near-equal candidates on a machine that drifts."""
from math import sin
from random import Random
from statistics import median
from time import perf_counter

import torch

from gpulab import Scenario, Work, tune

scenario = Scenario("mine", params={{"trial": 0, "blocks": 20}})
ELEMENTS, CANDIDATES, SPREAD = 60_000, 200, {spread}


def _drift(random):
    waves = [(random.uniform(0, 6.3), random.uniform(low, 3 * low)) for low in (1, 4, 16)]
    bursts = [random.uniform(0, 60) for _ in range(12)]

    def drift():
        now = perf_counter() % 60
        waving = sum(0.03 * sin(phase + 6.3 * now / period) for phase, period in waves)
        return 1 + waving + 0.2 * any(0 < now - burst < 0.3 for burst in bursts)

    return drift


def _works(trial):
    random = Random(trial)
    return [1 + random.uniform(0, SPREAD) for _ in range(CANDIDATES)], _drift(random)


def _step(data, share, drift, out):
    def step():
        torch.sin(data[: int(ELEMENTS * share * drift())])
        return out.fill_(1)

    return step


@scenario.variant
def usual(lab, trial, blocks):
    """One candidate after the other, the least median of as many blocks."""
    (works, drift), data, out = _works(trial), torch.rand(2 * ELEMENTS), torch.ones(1)
    medians = []
    for share in works:
        step, times = _step(data, share, drift, out), []
        for _ in range(blocks):
            started = perf_counter()
            for _ in range(6):
                step()
            times.append(perf_counter() - started)
        medians.append(median(times))
    lab.report("regret", works[medians.index(min(medians))] / min(works))
    return Work(lambda: data[:1] * 0 + out, inputs=data)


@scenario.variant(unchecked="it computes more or less from step to step")
def tuned(lab, trial):
    """gpulab.tune."""
    (works, drift), data, out = _works(trial), torch.rand(2 * ELEMENTS), torch.ones(1)

    def make(number):
        # the last one made is the one that was chosen
        lab.report("regret", works[number] / min(works))
        return Work(_step(data, works[number], drift, out))

    return tune(lab, [{{"number": number}} for number in range(CANDIDATES)], make)
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--time", type=float, default=8.0)
    parser.add_argument("--spread", type=float, default=0.03)
    options = parser.parse_args()
    regrets = {"usual": [], "tuned": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "candidates.py"
        file.write_text(SCENARIO.format(spread=options.spread))
        for trial in range(options.trials):
            figures, blocks = run(file, folder, trial + Random().randrange(1 << 20), options.time)
            for name, values in regrets.items():
                values.append(figures[name])
            shown = ", ".join(f"{name} {values[-1]:.4f}" for name, values in regrets.items())
            print(f"trial {trial + 1}: regret {shown}; {blocks} blocks", flush=True)
    for name, values in regrets.items():
        good = sum(value <= 1.01 for value in values)
        mean = sum(values) / len(values)
        print(
            f"{name}: regret <= 1.01 in {good} of {len(values)} trials, mean {mean:.4f}, worst "
            f"{max(values):.4f}"
        )


def run(file, folder, trial, time_s):
    """The regret of each way, and the blocks that `tune` took."""
    flags = ("--set", f"trial={trial}", "--time", str(time_s), "--telemetry", "off")
    environment = {**os.environ, "XDG_CACHE_HOME": folder, "XDG_STATE_HOME": folder}
    report = result_of(file, *flags, "--profile", "off", env=environment)
    tuned = next(variant for variant in report["variants"] if variant["name"] == "tuned")
    figures = {
        figure["variant"]: figure["value"]
        for figure in report["figures"]
        if figure["name"] == "regret"
    }
    return figures, sum(tried["blocks"] for tried in tuned["tuning"]["tried"])


if __name__ == "__main__":
    main()
