"""Goodput of what torch.profiler really writes, against what the step measures of itself."""

import json
from time import perf_counter, sleep

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader

from gpulab.core.payloads import TRACE_PREFIX
from gpulab.features.goodput.analysis import call_counts, partition
from gpulab.features.goodput.recorded_operations import operations
from gpulab.features.goodput.trace import WINDOW, read, validate
from gpulab.stats.time_spans import measure, union

HALF = 0.04


def record(step, path, steps=5):
    """The Chrome trace of some steps."""
    recording = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with recording, record_function(WINDOW):
        for _ in range(steps):
            step()
    recording.export_chrome_trace(str(path))
    return json.loads(path.read_text())


class Halves:
    """Sleeps for its data, then multiplies for as long, and notes for how long at least and at
    most.
    """

    def __init__(self):
        self.a = torch.randn(64, 64)
        self.a @ self.a
        self.least_s = self.most_s = 0.0

    def __call__(self):
        with record_function(f"{TRACE_PREFIX}data"):
            sleep(HALF)
        started = perf_counter()
        with record_function(f"{TRACE_PREFIX}useful"):
            inside = perf_counter()
            while perf_counter() < inside + HALF:
                for _ in range(10):
                    torch.relu(torch.mm(self.a, self.a))
            self.least_s += perf_counter() - inside
        self.most_s += perf_counter() - started


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    step = Halves()
    document = record(step, tmp_path_factory.mktemp("trace") / "trace.json")
    return step, document, read(document)


@pytest.mark.slow
def test_goodput_is_what_the_step_measures_of_itself(halves):
    step, _, trace = halves
    parts = partition(trace)
    assert parts.marked
    assert not parts.on_device
    assert 0.999 * step.least_s < parts.seconds["useful"] < 1.001 * step.most_s
    assert parts.seconds["data wait"] > 0.999 * 5 * HALF


def test_the_partition_sums_to_the_window_of_the_trace(halves):
    _, document, trace = halves
    (window_us,) = [raw["dur"] for raw in document["traceEvents"] if raw["name"] == WINDOW]
    parts = partition(trace)
    assert sum(parts.seconds.values()) == pytest.approx(1e-6 * window_us, rel=1e-3)
    assert sum(parts.shares.values()) == pytest.approx(1, abs=1e-9)


def test_a_viewer_draws_it(halves):
    _, document, trace = halves
    assert validate(document) == []
    assert trace.skipped == 0


def test_self_times_are_no_more_than_the_time_in_any_operation(halves):
    _, _, trace = halves
    table = operations(trace)
    busy = measure(union(event.span for events in trace.operations.values() for event in events))
    assert sum(row.self_s for row in table) <= busy + 1e-9
    assert (table[0].name, table[0].shapes) == ("aten::mm", "64x64, 64x64")
    assert call_counts(trace)["aten::mm"] == table[0].calls


def test_recordings_of_the_same_work_have_the_same_counts(tmp_path):
    a = torch.randn(8, 8, requires_grad=True)

    def step():
        (a @ a).sum().backward()

    step()
    first, second = (
        call_counts(read(record(step, tmp_path / f"{number}.json"))) for number in range(2)
    )
    assert first == second
    assert any(name.startswith("autograd::engine") for name in first)


def test_a_data_loader_waits_for_data_without_any_phase(tmp_path):
    loader = DataLoader(list(range(64)), batch_size=8, num_workers=0)
    parts = partition(
        read(record(lambda: [batch.float().sum() for batch in loader], tmp_path / "trace.json"))
    )
    assert not parts.marked
    assert 0 < parts.seconds["data wait"] < parts.window_s
    assert parts.seconds["useful"] > 0
