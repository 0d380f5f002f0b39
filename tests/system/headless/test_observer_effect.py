"""`--observer-effect`: telemetry is switched off and on in turn, and its effect is a ratio of pairs."""

import random
from math import exp

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.analysis.statistics import median_interval
from gpulab.headless import observer
from gpulab.protocol.events import Samples, TelemetryEnded, TelemetrySwitched
from gpulab.protocol.run_file import read_run_file


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    monkeypatch.setattr(observer, "_WINDOW_S", 0.1)
    monkeypatch.setattr("gpulab.headless.drive.TICK_S", 0.03)
    return CommandLine(lab, monkeypatch, capsys)


def test_telemetry_is_switched_in_pairs_while_the_rounds_run(lab, gpulab):
    options = ("--device", "cpu", "--time", "3.5", "--json", "out.json", "--output", "run.jsonl")
    process = gpulab("--run", "mine.py", "--observer-effect", *options)
    assert process.code == 0, process.stderr
    effect = process.result
    assert (effect["schema"], effect["scenario"]) == ("gpulab.observer/1", "mine")
    assert effect["run_file"] == "run.jsonl"
    # The script's times know nothing of telemetry.
    assert effect["low"] <= effect["ratio"] <= effect["high"]
    assert effect["ratio"] == pytest.approx(1, abs=0.002)
    events = read_run_file(process.run_file).events
    switches = [event.on for event in events if isinstance(event, TelemetrySwitched)]
    pairs = [*zip(switches[::2], switches[1::2], strict=False)]
    assert all(set(pair) == {True, False} for pair in pairs)
    assert effect["pairs"] in (len(pairs), len(pairs) - 1)  # the window after the last switch has no end
    assert effect["pairs"] >= 8
    assert any(isinstance(event, TelemetryEnded) for event in events)
    assert f"observer effect of telemetry on mine: time with / without {effect['ratio']:.4f} (" in process.stdout
    assert process.stdout.rstrip().endswith("inside 1 %")


def test_too_few_pairs_are_no_result(gpulab):
    process = gpulab("--run", "mine.py", "--observer-effect", "--device", "cpu", "--time", "0.5", "--json", "out.json")
    assert process.code == 6
    assert process.result["ratio"] is None
    assert process.result["pairs"] < 8
    assert f"mine: {process.result['pairs']} pairs, too few for an interval: give it more --time" in process.stdout


@pytest.mark.parametrize("slowdown", [0.0, 0.03])
def test_an_effect_is_found_although_the_machine_drifts(slowdown):
    rng, switches, spans, on = random.Random(1), [], [], True
    for number in range(2000):  # a block every 10 ms, a window every half second
        t = number * 0.01
        if number % 50 == 0:
            on = rng.random() < 0.5 if number % 100 == 0 else not on
            switches.append(TelemetrySwitched(on=on, t=t))
        drift = 1 + 0.2 * number / 2000
        spans.append((t + 0.005, 0.004 * drift * (1 + slowdown * on) * rng.gauss(1, 0.005)))
    ratios = observer._log_ratios([*switches, samples(spans)])
    interval = median_interval(ratios)
    assert len(ratios) == len(switches) // 2 - 1 + len(switches) % 2
    assert exp(interval.low) - 0.004 <= 1 + slowdown <= exp(interval.high) + 0.004
    assert exp(interval.high) - exp(interval.low) < 0.02


def samples(spans):
    count = len(spans)
    columns = dict.fromkeys(("epoch", "variant", "faults", "switches"), [0] * count)
    ended, times_s = [end for end, _ in spans], [time_s for _, time_s in spans]
    options = {"round": [*range(count)], "times_s": times_s, "cpu_s": times_s, "ended": ended, "steps": [1] * count}
    return Samples(names=("v",), complete=1, **columns, **options)
