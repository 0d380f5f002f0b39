"""Goodput of what torch.profiler really writes, against what the step measures of itself."""

import json
from time import perf_counter, sleep

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader

from gpulab.model.goodput import partition
from gpulab.model.intervals import measure, union
from gpulab.model.operations import kernels, operations
from gpulab.model.trace import read, validate
from gpulab.worker.marks import PREFIX

HALF = 0.04


def recorded(step, path, steps=5):
    """The Chrome trace of some steps."""
    recording = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with recording, record_function(f"{PREFIX}window"):
        for _ in range(steps):
            step()
    recording.export_chrome_trace(str(path))
    return json.loads(path.read_text())


class Halves:
    """Sleeps for its data, then multiplies for as long; says itself how much of its time was useful."""

    def __init__(self):
        self.a = torch.randn(64, 64)
        self.a @ self.a
        self.useful_s = self.total_s = 0.0

    def __call__(self):
        began = perf_counter()
        with record_function(f"{PREFIX}data"):
            sleep(HALF)
        working = perf_counter()
        with record_function(f"{PREFIX}useful"):
            while perf_counter() < working + HALF:
                for _ in range(10):
                    torch.relu(torch.mm(self.a, self.a))
        ended = perf_counter()
        self.useful_s += ended - working
        self.total_s += ended - began


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    step = Halves()
    return step, recorded(step, tmp_path_factory.mktemp("trace") / "trace.json")


def test_goodput_is_what_the_step_says_of_itself(halves):
    step, document = halves
    found = partition(read(document))
    own = step.useful_s / step.total_s
    assert found.marked
    assert not found.on_device
    assert found.goodput == pytest.approx(own, abs=0.01)
    assert found.shares["data wait"] == pytest.approx(1 - own, abs=0.01)


def test_the_partition_sums_to_the_window_of_the_trace(halves):
    _, document = halves
    (window,) = [one["dur"] for one in document["traceEvents"] if one["name"] == f"{PREFIX}window"]
    found = partition(read(document))
    assert sum(found.seconds.values()) == pytest.approx(1e-6 * window, rel=1e-3)
    assert sum(found.shares.values()) == pytest.approx(1, abs=1e-9)


def test_a_viewer_draws_it(halves):
    _, document = halves
    assert validate(document) == []
    assert read(document).skipped == 0


def test_self_times_are_no_more_than_the_time_in_any_operation(halves):
    _, document = halves
    trace = read(document)
    found = operations(trace)
    busy = measure(union(one.span for some in trace.operations.values() for one in some))
    assert sum(one.self_s for one in found) <= busy + 1e-9
    assert (found[0].name, found[0].shapes) == ("aten::mm", "64x64, 64x64")
    assert kernels(trace)["aten::mm"] == found[0].calls


def test_recordings_of_the_same_work_have_the_same_counts(tmp_path):
    a = torch.randn(8, 8, requires_grad=True)

    def step():
        (a @ a).sum().backward()

    step()
    first, second = (kernels(read(recorded(step, tmp_path / f"{i}.json"))) for i in range(2))
    assert first == second
    assert any(name.startswith("autograd::engine") for name in first)


def test_a_data_loader_waits_for_data_without_any_mark(tmp_path):
    loader = DataLoader(list(range(64)), batch_size=8, num_workers=0)
    found = partition(read(recorded(lambda: [batch.float().sum() for batch in loader], tmp_path / "trace.json")))
    assert not found.marked
    assert 0 < found.seconds["data wait"] < found.window_s
    assert found.seconds["useful"] > 0
