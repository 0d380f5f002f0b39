"""The operations of somebody's training step, asked for on the command line."""

import re

import pytest

STEP = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = torch.rand(128, 64)


def step():
    loss = (model(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()
"""
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def line_of(words):
    return 1 + STEP.splitlines().index(f"    {words}")


@pytest.mark.slow
def test_as_many_as_asked_for_sorted_by_a_column_with_lines_modules_and_work(module_lab):
    path = module_lab.write("training.py", STEP)
    run = module_lab.run(
        f"{path}:step", "--profile", "on", "--top", "20", "--sort", "total", time_s="1"
    )
    assert run.code == 0, run.stderr
    head = next(line for line in run.stderr.splitlines() if line.startswith("operations of a step"))
    assert "total ↓" in head
    after = run.stderr.split(head)[1].splitlines()
    totals = []
    for line in after[1:21]:
        figures = re.findall(r"([\d.,]+) (s|ms|µs|ns)\b", line)
        totals.append(float(figures[1][0].replace(",", "")) * _SECONDS[figures[1][1]])
    assert totals == sorted(totals, reverse=True)
    assert len(totals) == 20
    assert run.stderr.count("operations of a step") == 1

    rows = run.variant("step")["goodput"]["operations"]
    products = {(row["name"], row["shapes"]): row for row in rows if row["name"] == "aten::addmm"}
    first = products["aten::addmm", "256, 128x64, 64x256"]
    assert first["flops"] == 2 * 128 * 64 * 256
    assert first["bytes"] == 4 * (256 + 128 * 64 + 64 * 256 + 128 * 256)
    assert (
        first["line"] == f"training.py:{line_of('loss = (model(batch) - batch).square().mean()')}"
    )
    assert first["module"] == "Sequential.0"
    assert first["memory_bytes"] == 4 * 128 * 256
    assert first["device_s"] is None
    backward = [row for row in rows if row["name"] == "aten::gelu_backward"]
    assert [row["module"] for row in backward] == ["Sequential.1"]
    updates = [row for row in rows if row["line"] == f"training.py:{line_of('optimizer.step()')}"]
    assert updates

    # functions declare no work: the roofs are measured for their operations
    roofs = {ceiling["roof"] for ceiling in run.run["ceilings"]["ceilings"]}
    assert {"device memory", "matrix"} <= roofs
    for point in run.variant("step")["operation_points"]:
        assert point["rate"] > 0
        assert point["fraction"] == pytest.approx(point["rate"] / point["attainable"], rel=1e-6)
