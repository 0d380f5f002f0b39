"""A signal between two runs of one command stops the command, whose summary still stands."""

import signal

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.headless import run


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_two_runs_stops_the_second(lab, monkeypatch, capsys, which):
    shown = []

    def show_report(report, *_):
        shown.append(report.outcome)
        if len(shown) == 1:
            signal.raise_signal(which)

    monkeypatch.setattr(run, "show_report", show_report)
    names = [lab.write(f"{name}.py", SCENARIO) for name in ("first", "second", "third")]
    options = ("--telemetry", "off", "--profile", "off", "--json", "out.json", "--output", "runs")
    finished = CommandLine(lab, monkeypatch, capsys)("--run", *names, *options)
    assert finished.code == 130
    assert [report["outcome"] for report in finished.result["runs"]] == ["measured", "interrupted"]
    assert shown == ["measured", "interrupted"]
    assert "first" in finished.stdout
    assert signal.getsignal(which) == signal.SIG_DFL
