"""A training step as people have it, a plain function of a file: through the lab, and by torch's
profiler by hand.
"""

import json
import subprocess
import sys

import pytest
from finished_runs import events_of

from gpulab.core.events import Checked, Profiled
from gpulab.features.goodput.analysis import operations
from gpulab.features.goodput.trace import read, validate

STEP = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True), torch.nn.Linear(128, 128)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.rand(32, 32, 128)), batch_size=16)

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
# The lab pins it: by itself it asks the system for memory, and gives it back, in some processes and
# not in others.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
}
BY_HAND = """
import json, sys
import torch
torch.set_num_threads(1)
sys.path.insert(0, ".")
from train import step
from torch.profiler import ProfilerActivity, profile
for _ in range(3):
    step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as first:
    step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
    for _ in range(4):
        step()
rows = recording.key_averages()
total = sum(row.self_cpu_time_total for row in rows if "::" in row.key)
print(json.dumps({row.key: row.self_cpu_time_total / total for row in rows}))
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
        trained.variant("step")["time_s"]["median"]
        > trained.variant("other")["time_s"]["median"]
        > 0
    )
    assert events_of(trained, Checked) == []


def test_its_partition_its_operations_and_its_peak_are_recorded(trained, goodput):
    assert not goodput["marked"]
    assert goodput["goodput"] > 0.3  # nothing is marked: what computes counts
    assert sum(goodput["partition"].values()) == pytest.approx(1.0, abs=1e-3)
    assert any("mm" in row["name"] for row in goodput["operations"])
    assert goodput["operations"][0]["self_s"] >= goodput["operations"][1]["self_s"]
    assert goodput["peak_bytes"] >= 16 * 32 * 512 * 4  # the hidden layer's output
    assert "operations of a step" in trained.stderr
    assert "nothing is marked useful" in trained.stderr


def test_partition_and_operations_agree_with_the_trace(trained, goodput, trace):
    document = json.loads((trained.run_file.parent / "t-step.json").read_text())
    assert validate(document) == []
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


def test_operations_agree_with_the_profiler_by_hand(module_lab, trained, trace):
    script = module_lab.write("by_hand.py", BY_HAND)
    # Of the operations' own time, since by hand there is no window.
    total = sum(
        row.self_s for row in operations(trace, most=1000) if not row.name.startswith("...")
    )
    in_lab = {name: share * trace.window_s / total for name, share in shares_by_name(trace).items()}
    names = [
        "aten::addmm",
        "aten::mm",
        "aten::bmm",
        "aten::_fused_adamw_",
        "aten::gelu",
        "aten::native_layer_norm",
    ]
    # within 2 points on a quiet machine; two processes on a busy one are further apart
    for _ in range(3):
        by_hand = shares_by_hand(script, module_lab.folder, module_lab.env | ALLOCATOR)
        apart = {name: in_lab.get(name, 0.0) - by_hand.get(name, 0.0) for name in names}
        if max(map(abs, apart.values())) < 0.06:
            return
    pytest.fail(f"shares in the lab, less those by hand: {apart}")


def shares_by_hand(script, folder, environment):
    command = [sys.executable, script]
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(process.stdout.splitlines()[-1])


def shares_by_name(trace):
    shares = {}
    for row in operations(trace, most=1000):
        shares[row.name] = shares.get(row.name, 0.0) + row.share
    return shares
