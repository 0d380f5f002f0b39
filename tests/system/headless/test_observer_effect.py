"""`--observer-effect`: telemetry is switched off and on in turn, and its effect is a ratio of
pairs.
"""

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.core.events import TelemetryEnded, TelemetrySwitched
from gpulab.core.run_file import read_run_file
from gpulab.features.observer_effect.report import observer_effect_of
from gpulab.headless import observer
from gpulab.session.scripting import load

EFFECT = ("ratio", "low", "high", "pairs")


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    monkeypatch.setattr(observer, "_WINDOW_S", 0.1)
    monkeypatch.setattr("gpulab.session.drive.TICK_S", 0.03)
    return CommandLine(lab, monkeypatch, capsys)


@pytest.mark.slow
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
    assert 8 <= effect["pairs"] <= len(pairs)  # on a busy machine a window may have no block
    assert any(isinstance(event, TelemetryEnded) for event in events)
    again = observer_effect_of(load(process.run_file), events)  # from the run file the same as live
    assert (again.ratio, again.low, again.high, again.pairs) == tuple(
        effect[name] for name in EFFECT
    )
    assert (
        f"observer effect of telemetry on mine: time with / without {effect['ratio']:.4f} ("
        in process.stdout
    )
    assert process.stdout.rstrip().endswith("inside 1 %")


def test_too_few_pairs_are_no_result(gpulab):
    process = gpulab(
        "--run",
        "mine.py",
        "--observer-effect",
        "--device",
        "cpu",
        "--time",
        "0.5",
        "--json",
        "out.json",
    )
    assert process.code == 6
    assert process.result["ratio"] is None
    assert process.result["pairs"] < 8
    assert (
        f"mine: {process.result['pairs']} pairs, too few for an interval: give it more --time"
        in process.stdout
    )
