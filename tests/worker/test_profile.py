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
    return _step(lab, wait_ms * 1e-3)

@scenario.variant
def hardly(lab, wait_ms):
    """Waits a tenth of that."""
    return _step(lab, wait_ms * 1e-4)

def _step(lab, wait_s):
    a, out = torch.rand(256, 256), torch.empty(256, 256)
    def step():
        began = time.perf_counter()
        with lab.phase("data"):
            with lab.phase("data"):
                time.sleep(wait_s)
        computes = time.perf_counter()
        with lab.useful():
            while time.perf_counter() - computes < 0.01:
                torch.mm(a, a, out=out)
        ended = time.perf_counter()
        if torch.autograd._profiler_enabled():
            with open(f"own-{wait_s}.txt", "a") as file:
                print(ended - computes, ended - began, file=file)
        return out
    return Work(step, inputs=a)
'''


@pytest.mark.slow
def test_goodput_is_what_the_step_finds_by_itself(lab):
    done = lab.run(lab.write("halves.py", HALVES), "--profile", "on", time_s="1")
    assert done.code == 0, done.stderr
    for name, wait_s in (("waits", 0.01), ("hardly", 0.001)):
        found, steps = done.variant(name)["goodput"], done.state.variants[name].profiled.steps
        rows = [line.split() for line in (lab.folder / f"own-{wait_s}.txt").read_text().splitlines()[-steps:]]
        useful, whole = (sum(map(float, column)) for column in zip(*rows, strict=True))
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
    assert "step: operations" in done.stderr
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
    done = lab.run(lab.write("broken.py", BROKEN), time_s="1")
    assert done.code == 0, done.stderr
    assert done.verdict("works") is not None
    assert done.variant("breaks")["goodput"] is None
    assert done.variant("works")["goodput"]["goodput"] is not None
    assert any("could not be profiled: not while I am watched" in text for text in done.run["warnings"])


def test_without_a_profile_no_second_worker_is_started(lab):
    done = lab.run(lab.write("halves.py", HALVES), "--profile", "off")
    assert done.code == 0, done.stderr
    assert done.variant("waits")["goodput"]["goodput"] is None
    assert done.variant("waits")["goodput"]["phases"]["data"] > 0.3
