"""A training step as people have it, through the lab and through torch's profiler by hand: the same figures."""

import json
import subprocess
import sys

import pytest

from gpulab.model.operations import operations
from gpulab.model.trace import read, validate

STEP = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True), torch.nn.Linear(64, 64)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.rand(64, 32, 64)), batch_size=16)

def step():
    total = 0.0
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        total += float(loss)
    return total
"""
# The lab pins it: by itself it asks the system for memory, and gives it back, in some processes and not in others.
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
for _ in range(5):
    step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as first:
    step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
    for _ in range(10):
        step()
found = recording.key_averages()
whole = sum(one.self_cpu_time_total for one in found if "::" in one.key)
print(json.dumps({one.key: one.self_cpu_time_total / whole for one in found}))
"""


@pytest.mark.slow
def test_partition_operations_and_trace_agree_with_each_other_and_with_the_profiler_by_hand(lab):
    path = lab.write("train.py", STEP)
    done = lab.run(f"{path}:step", "--trace", "t.json", time_s="1")
    assert done.code == 0, done.stderr
    found = done.variant("step")["goodput"]
    document = json.loads((lab.folder / "t.json").read_text())
    assert validate(document) == []
    trace = read(document)

    shares = {}
    for one in found["operations"]:
        shares[one["name"]] = shares.get(one["name"], 0.0) + one["share"]
    again = {}
    for one in operations(trace, most=1000):
        again[one.name] = again.get(one.name, 0.0) + one.share
    for name in ("aten::addmm", "aten::mm"):
        assert shares[name] == pytest.approx(again[name], abs=0.02)  # the table against the trace

    spans = sorted(one.span for one in trace.inside(trace.operations[trace.main]))
    busy = last = 0.0
    for start, end in spans:  # the partition against the trace, by another way of counting
        busy += max(0.0, end - max(start, last))
        last = max(last, end)
    parts = found["partition"]
    counted = parts["useful"] + parts["alloc"] + parts["preempted"]
    assert parts["data wait"] > 0  # the loader's own marks
    assert counted == pytest.approx(busy / trace.window_s, abs=0.02 + parts["data wait"] + parts["preempted"])

    script = lab.write("by_hand.py", BY_HAND)
    ran = subprocess.run(
        [sys.executable, script], cwd=lab.folder, env=lab.env | ALLOCATOR, capture_output=True, text=True, check=True
    )
    by_hand = json.loads(ran.stdout.splitlines()[-1])
    # Of the operations' own time, since by hand there is no window.
    whole = sum(one.self_s for one in operations(trace, most=1000) if not one.name.startswith("..."))
    mine = {name: share * trace.window_s / whole for name, share in again.items()}
    for name in (
        "aten::addmm",
        "aten::mm",
        "aten::bmm",
        "aten::_fused_adamw_",
        "aten::gelu",
        "aten::native_layer_norm",
    ):
        # Within 2 points on a quiet machine; two processes on a busy one are further apart.
        assert mine.get(name, 0.0) == pytest.approx(by_hand.get(name, 0.0), abs=0.06), name
