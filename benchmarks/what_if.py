"""Does `--what-if` predict what a part really gains? Each part is made a quarter shorter for real,
in pairs with the step as it is, and both gains stand beside each other, as shares of the step.

python benchmarks/what_if.py [PIPELINE ...] [--time S]      # a CPU: pipelines of known paths
python benchmarks/what_if.py --device cuda:0 [--budget-s 200]      # lessons, with smaller sizes
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from commands import GPULAB, with_ends
from pipelines import HIDDEN, PIPELINES

_FOLDER = Path(__file__).parent
_SCENARIOS = _FOLDER.parent / "scenarios"
_SHORTER = 0.75
_WITHIN = 0.1
"""Of the step."""
_HIDDEN_WITHIN = 0.03
_HEAD = f"{'step':<26} {'part':<12} {'share':>6} {'slope':>6} {'predicted':>22} {'real':>22}   off"

PIPELINE = '''"""{name}: one part after the other a quarter shorter."""
import sys
sys.path.insert(0, {folder!r})
from pipelines import step_of
from gpulab import Scenario
scenario = Scenario("what if")

@scenario.variant
def as_it_is(lab):
    return step_of(lab, {name!r})
'''
SHORTER = """
@scenario.variant
def shorter_{part}(lab):
    return step_of(lab, {name!r}, {{{part!r}: {factor}}})
"""
LESSON = '''"""A step of {lesson}, and the same with smaller sizes."""
import importlib.util
from gpulab import Scenario
spec = importlib.util.spec_from_file_location({lesson!r}, {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
scenario = Scenario("what if")
make = module.scenario.variants[{variant!r}].function

@scenario.variant(unchecked="the sizes differ")
def as_it_is(lab):
    return make(lab, **{params!r})

@scenario.variant(unchecked="the sizes differ")
def smaller(lab):
    return make(lab, **{smaller!r})
'''
LESSONS = (
    ("double_buffering", "overlapped", "useful", {"hidden": 896}, {}),
    ("double_buffering", "overlapped", "useful", {"hidden": 3584}, {"hidden": 4096}),
    ("sync_every_step", "item_each", "useful", {"width": 896}, {}),
    ("training_step", "naive", "useful", {"hidden": 3584}, {}),
    ("input_pipeline", "workers_0", "useful", {"hidden": 20480}, {}),
    ("double_buffering", "queued", "useful", {"hidden": 896}, {}),
)
"""Lesson, variant, part, sizes that make that part smaller, and sizes of both."""


def run(file, *flags):
    command = [*GPULAB, "--run", str(file), "--telemetry", "off", "--profile", "off", *flags]
    done = subprocess.run([*command, "--json"], check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return with_ends(json.loads(done.stdout)["runs"][0])


def gain_of(comparison):
    """(gain, low, high) as shares of the step, of a comparison."""
    speedup = comparison["speedup"]
    if speedup is None:
        print(f"{comparison['variant']}: {comparison['verdict']}, {comparison['reason']}")
        return None
    low = comparison["low"] or speedup
    high = comparison["high"] or speedup
    return 1 - 1 / speedup, 1 - 1 / low, 1 - 1 / high


def predicted_of(part, less, share):
    """The gain of a part that takes `less` of itself less."""
    scale = less / share
    ends = (part["gain"], part["gain_low"], part["gain_high"])
    return [scale * end if end is not None else scale * part["gain"] for end in ends]


def shown(gain):
    if gain is None:
        return f"{'not measured':>22}"
    value, low, high = gain
    return f"{value:6.1%} ({low:6.1%} {high:6.1%})"


def row(step, part, predicted, real, hidden):
    off = predicted[0] - real[0] if real else float("nan")
    holds = abs(off) <= _WITHIN
    if hidden:
        holds &= abs(predicted[0]) <= _HIDDEN_WITHIN
    verdict = "ok" if holds else "OFF"
    note = "hidden" if hidden else ""
    slope = part["slope"]["value"]
    print(
        f"{step:<26} {part['name']:<12} {part['share']:6.1%} {slope:6.2f} {shown(predicted)} "
        f"{shown(real)} {off:+6.1%} {verdict} {note}",
        flush=True,
    )
    return holds


def pipeline(name, folder, time_s):
    """A row for each part of one pipeline."""
    file = Path(folder) / f"{name}.py"
    text = PIPELINE.format(name=name, folder=str(_FOLDER))
    parts = PIPELINES[name][1]
    text += "".join(SHORTER.format(part=part, name=name, factor=_SHORTER) for part in parts)
    file.write_text(text)
    flags = ("--device", "cpu", "--time", str(time_s))
    what_if = run(file, "--what-if", *flags)["what_if"]
    seen = {part["name"]: part for part in what_if["parts"]}
    comparisons = run(file, *flags)["comparisons"]
    real = {comparison["variant"]: comparison for comparison in comparisons}
    for part in parts:
        predicted = predicted_of(seen[part], 1 - _SHORTER, what_if["less"])
        gained = gain_of(real[f"shorter_{part}"])
        yield row(name, seen[part], predicted, gained, (name, part) in HIDDEN)


def lesson(case, device, folder, number):
    """A row for a part of a lesson whose sizes make it smaller, by as much as it was seen to be."""
    from gpulab.features.trials.parts import PartsRequest
    from gpulab.features.trials.runs import parts_of
    from gpulab.options import Options
    from gpulab.session.launch import plan, single_launch
    from gpulab.session.look import Look, LookError

    name, variant, part, smaller, sizes = case
    source = _SCENARIOS / f"{name}.py"
    defaults = single_launch(str(source)).entry.scenario.params
    params = {**defaults, **sizes}
    file = Path(folder) / f"case_{number}.py"
    values = {"params": params, "smaller": {**params, **smaller}}
    file.write_text(LESSON.format(lesson=name, file=str(source), variant=variant, **values))
    flags = ("--device", device, "--quick")
    what_if = run(file, "--what-if", *flags)["what_if"]
    job = plan(single_launch(str(file)), Options(device=device)).job
    seconds = []
    for each in ("as_it_is", "smaller"):
        try:
            seen = parts_of(PartsRequest(job=job, variant=each), Look())
        except LookError as error:
            sys.exit(str(error))
        seconds.append({entry.name: entry.seconds for entry in seen.parts})
    less = 1 - seconds[1][part] / seconds[0][part]
    for entry in what_if["parts"]:
        if entry["name"] != part:
            slope = entry["slope"]
            text = entry["why_not"] or f"slope {slope['value']:.2f}"
            print(f"{name} {variant:<16} {entry['name']:<12} {text}", flush=True)
    found = next(entry for entry in what_if["parts"] if entry["name"] == part)
    (comparison,) = run(file, *flags)["comparisons"]
    predicted = predicted_of(found, less, what_if["less"])
    return row(f"{name} {variant}", found, predicted, gain_of(comparison), hidden=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *PIPELINES])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--time", type=float, default=30.0)
    parser.add_argument("--budget-s", type=float, default=200.0)
    given = parser.parse_args()
    print(_HEAD, flush=True)
    started = monotonic()
    held = []
    with tempfile.TemporaryDirectory() as folder:
        if given.device == "cpu":
            for name in given.names or PIPELINES:
                held += pipeline(name, folder, given.time)
        else:
            for number, case in enumerate(LESSONS):
                if monotonic() - started > given.budget_s:
                    print(f"no time left for {len(LESSONS) - number} more")
                    break
                held.append(lesson(case, given.device, folder, number))
    print(f"{sum(held)} of {len(held)} within {_WITHIN:.0%} of the step (hidden: 0)")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
