"""Goodput in real runs: by arithmetic, with marks and without, for scenarios and for plain functions."""

import json

import pytest

from gpulab.model.trace import validate

HALVES = '''
"""Halves: a step that waits and computes, and times itself."""
import time
import torch
from gpulab import Scenario, Work
scenario = Scenario("mine", params={"wait_ms": 10})

@scenario.variant
def waits(lab, wait_ms):
    """Waits for data, then computes as long; the wait lies in a phase within a phase."""
    yield from _step(lab, wait_ms * 1e-3)

@scenario.variant
def hardly(lab, wait_ms):
    """Waits a tenth of that."""
    yield from _step(lab, wait_ms * 1e-4)

def _step(lab, wait_s):
    a, out, own = torch.rand(256, 256), torch.empty(256, 256), []
    def step():
        began = time.perf_counter()
        with lab.phase("data"):
            with lab.phase("data"):
                time.sleep(wait_s)
        with lab.useful():
            computes = time.perf_counter()
            while time.perf_counter() - computes < 0.01:
                torch.mm(a, a, out=out)
            kept = [torch.zeros(64) for _ in range(20)]  # what allocates under a mark is useful too
            ended = time.perf_counter()
        if torch.autograd._profiler_enabled():
            own.append(f"{began} {computes} {ended}")
        return out
    yield Work(step, inputs=a)
    if own:
        with open(f"own-{wait_s}.txt", "w") as file:
            print(*own, sep=chr(10), file=file)
'''


@pytest.mark.slow
def test_goodput_is_what_the_step_finds_by_itself(lab):
    done = lab.run(lab.write("halves.py", HALVES), "--profile", "on", time_s="1")
    assert done.code == 0, done.stderr
    for name, wait_s in (("waits", 0.01), ("hardly", 0.001)):
        found, steps = done.variant(name)["goodput"], done.state.variants[name].profiled.steps
        rows = [line.split() for line in (lab.folder / f"own-{wait_s}.txt").read_text().splitlines()[-steps:]]
        began, computes, ended = ([float(one) for one in column] for column in zip(*rows, strict=True))
        useful, whole = sum(ended) - sum(computes), ended[-1] - began[0]
        assert found["marked"]
        # What other processes took of its time is no longer useful, which the step's own clock cannot tell.
        most = found["goodput"] + found["partition"]["preempted"]
        assert found["goodput"] - 0.01 <= useful / whole <= most + 0.01
        assert sum(found["partition"].values()) == pytest.approx(1.0, abs=1e-3)
        assert sum(found["phases"].values()) == pytest.approx(1.0, abs=1e-3)
    waits, hardly = (done.variant(name)["goodput"]["partition"] for name in ("waits", "hardly"))
    assert waits["data wait"] > 0.4 > 0.2 > hardly["data wait"]
    assert "data wait" in done.stderr
    assert "uuuuu" in done.stderr  # the bar


FUNCTION = """
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.rand(256, 64)

    def step():
        optimizer.zero_grad()
        loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()
        return loss
"""


@pytest.mark.slow
def test_a_plain_function_gets_its_partition_its_operations_its_trace_and_its_peak(lab):
    path = lab.write("train.py", FUNCTION)
    done = lab.run(f"{path}:step", "--trace", "t.json", "--memory", time_s="1")
    assert done.code == 0, done.stderr
    found = done.variant("step")["goodput"]
    assert not found["marked"]
    assert found["goodput"] > 0.3  # nothing is marked: what computes counts
    assert sum(found["partition"].values()) == pytest.approx(1.0, abs=1e-3)
    names = [one["name"] for one in found["operations"]]
    assert any("mm" in name for name in names)
    assert found["operations"][0]["self_s"] >= found["operations"][1]["self_s"]
    assert found["peak_bytes"] >= 256 * 256 * 4  # the hidden layer's output
    document = json.loads((lab.folder / "t.json").read_text())
    assert validate(document) == []
    assert "gpulab:window" in {event.get("name") for event in document["traceEvents"]}
    assert "operations of a step" in done.stderr
    assert "nothing is marked useful" in done.stderr


BROKEN = '''
"""Broken: where nobody looks."""
import sys
import torch
from gpulab import Scenario, Work
scenario = Scenario("mine")

@scenario.variant
def breaks(lab):
    """Works, and not under a profiler."""
    a = torch.rand(1000)
    def step():
        if torch.autograd._profiler_enabled():
            raise RuntimeError("not while I am watched")
        return a + 1
    return Work(step, inputs=a)

@scenario.variant
def works(lab):
    """The same."""
    a = torch.rand(1000)
    return Work(lambda: a + 1, inputs=a)
'''


def test_a_step_that_cannot_be_profiled_keeps_its_measurement(lab):
    done = lab.run(lab.write("broken.py", BROKEN), "--profile", "on", time_s="1")
    assert done.code == 0, done.stderr
    assert done.verdict("works") is not None
    assert done.variant("breaks")["goodput"] is None
    assert done.variant("works")["goodput"]["goodput"] is not None
    assert any("could not be profiled: not while I am watched" in text for text in done.run["warnings"])


HARD = """
    import os, time
    import torch

    def watched():
        return torch.autograd._profiler_enabled()

    def dies():
        if watched():
            os._exit(7)
        return torch.ones(10)

    def quits():
        if watched():
            raise SystemExit(3)
        return torch.ones(10)

    def hangs():
        while watched():
            time.sleep(0.01)
        return torch.ones(10)

    def works():
        return torch.ones(10) + 1
"""


def test_what_dies_under_the_profiler_takes_no_other_partition_with_it(lab):
    done = lab.run(f"{lab.write('hard.py', HARD)}:dies,quits,works", "--trace", "t.json", time_s="1")
    assert done.code == 0, done.stderr
    told = " ".join(done.run["warnings"])
    assert "where the time of dies goes could not be seen: the worker's process ended with exit code 7" in told
    assert "quits was measured, and could not be profiled: 3" in told
    assert done.variant("works")["goodput"]["goodput"] > 0
    assert done.variant("dies")["time_s"] is not None
    assert [path.name for path in lab.folder.glob("t*.json")] == ["t-works.json"]  # whoever else was to have one


def test_what_hangs_under_the_profiler_ends_with_the_timeout_of_the_run(lab):
    done = lab.run(f"{lab.write('hard.py', HARD)}:hangs", "--timeout", "9", "--profile", "on", time_s="1")
    assert done.code == 0, done.stderr
    assert any("no end after 9 s" in text for text in done.run["warnings"])
    assert done.variant("hangs")["time_s"] is not None


FAILS = BROKEN.replace("a = torch.rand(1000)", "raise ValueError('no data')", 1)


def test_what_was_never_measured_is_not_profiled(lab):
    done = lab.run(lab.write("broken.py", FAILS), "--profile", "on", time_s="1")
    assert done.code == 3
    assert [one["goodput"] for one in done.run["variants"]] == [None, None]


def test_a_trace_that_cannot_be_written_costs_no_partition(lab):
    (lab.folder / "t.json").mkdir()
    done = lab.run(f"{lab.write('hard.py', HARD)}:works", "--trace", "t.json", time_s="1")
    assert done.code == 0, done.stderr
    assert any("the trace could not be written" in text for text in done.run["warnings"])
    assert done.variant("works")["goodput"]["goodput"] > 0
    assert done.variant("works")["goodput"]["trace"] is None


def test_of_several_runs_each_has_its_trace(lab):
    start, end = HALVES.index("@scenario.variant\ndef hardly"), HALVES.index("def _step")
    path = lab.write("halves.py", HALVES[:start] + HALVES[end:])
    options = ("--device", "cpu", "--smoke", "--telemetry", "off", "--sweep", "wait_ms=1,2", "--trace", "t.json")
    assert lab.call("--run", path, *options).code == 0
    assert {path.name for path in lab.folder.glob("t*.json")} == {f"t-halves-wait_ms-{value}.json" for value in (1, 2)}


def test_without_a_profile_no_second_worker_is_started(lab):
    done = lab.run(lab.write("halves.py", HALVES), "--profile", "off", time_s="1")
    assert done.code == 0, done.stderr
    assert " · profile " not in done.stderr
    assert done.variant("waits")["goodput"]["goodput"] is None
    assert done.variant("waits")["goodput"]["phases"]["data"] > 0.3
