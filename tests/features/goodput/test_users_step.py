"""A training step as people have it, a plain function of a file, through the lab."""

import json

import pytest
from finished_runs import events_of

from gpulab.core.events import Checked
from gpulab.features.goodput.events import Profiled
from gpulab.features.goodput.recorded_operations import operations
from gpulab.traces.trace import read

STEP = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True), torch.nn.Linear(128, 128)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.rand(32, 32, 128)), batch_size=32)

def step():
    total = 0.0
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        total += float(loss)
    return total

def other():
    return torch.ones(3)
"""


@pytest.fixture(scope="module")
def trained(module_lab):
    path = module_lab.write("train.py", STEP)
    return module_lab.run(
        f"{path}:step,other", "--smoke", "--profile", "on", "--trace", "t.json", "--memory"
    )


@pytest.fixture(scope="module")
def goodput(trained):
    return trained.variant("step")["goodput"]


@pytest.fixture(scope="module")
def trace(trained):
    return read(json.loads((trained.run_file.parent / "t-step.json").read_text()))


def test_plain_functions_are_timed_and_compared_with_nothing(trained):
    # whatever its control says: it only shows as a finding
    assert trained.code == 0, trained.stderr
    assert trained.run["functions"]
    assert trained.run["comparisons"] == []
    assert len(trained.findings("plain_functions")) == 1
    assert not any(line.split()[:1] == ["control"] for line in trained.stderr.splitlines())
    assert [variant["status"] for variant in trained.run["variants"]] == ["ok", "ok"]
    assert [variant["reason"] for variant in trained.run["variants"]] == [None, None]
    assert (
        trained.variant("step")["time_s"]["value"] > trained.variant("other")["time_s"]["value"] > 0
    )
    assert events_of(trained, Checked) == []


def test_its_partition_its_operations_and_its_peak_are_recorded(trained, goodput):
    assert not goodput["marked"]
    assert goodput["goodput"] > 0  # nothing is marked: what computes counts
    assert sum(goodput["partition"].values()) == pytest.approx(1.0, abs=1e-3)
    assert any("mm" in row["name"] for row in goodput["operations"])
    assert goodput["operations"][0]["self_s"] >= goodput["operations"][1]["self_s"]
    peak_bytes = trained.variant("step")["memory"]["peak_bytes"]
    assert peak_bytes >= 16 * 32 * 512 * 4  # the hidden layer's output
    assert "operations of step" in trained.stderr
    assert "nothing is marked useful" in trained.stderr


def test_partition_and_operations_agree_with_the_trace(trained, goodput, trace):
    in_report, in_trace = {}, shares_by_name(trace)
    for row in goodput["operations"]:
        in_report[row["name"]] = in_report.get(row["name"], 0.0) + row["share"]
    for name in ("aten::addmm", "aten::mm"):
        assert in_report[name] == pytest.approx(in_trace[name], abs=0.02)
    busy = last = 0.0
    for start, end in sorted(
        operation.span for operation in trace.inside(trace.operations[trace.main])
    ):
        busy += max(0.0, end - max(start, last))
        last = max(last, end)
    *_, profiled = [event for event in events_of(trained, Profiled) if event.variant == "step"]
    # the trace is that of the second recording, the goodput's parts are of the first
    partition = profiled.repeated
    assert partition.window_s == pytest.approx(trace.window_s)
    parts = {
        category: seconds / partition.window_s for category, seconds in partition.seconds.items()
    }
    counted = parts["useful"] + parts["alloc"] + parts["preempted"]
    assert parts["data wait"] > 0  # the loader's own marks
    assert counted == pytest.approx(
        busy / trace.window_s, abs=0.01 + parts["data wait"] + parts["preempted"]
    )


def shares_by_name(trace):
    shares = {}
    for row in operations(trace, most=1000):
        shares[row.name] = shares.get(row.name, 0.0) + row.share
    return shares
