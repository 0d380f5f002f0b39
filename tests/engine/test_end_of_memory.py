"""What a worker makes of an allocation that fails, and of a limit that it already has, in this
process.
"""

import resource

import psutil
import pytest
import torch

from gpulab.core.events import OutOfMemory, VariantFailed
from gpulab.core.jobs import Measure, ScenarioFile, VariantInfo
from gpulab.core.statuses import FailureKind, Stage
from gpulab.engine.processes import device as memory
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.reporting import Reporter

INFOS = (VariantInfo(name="small"), VariantInfo(name="large", against="small"))


class RecordingChannel:
    def __init__(self):
        self.events = []

    def emit(self, *events):
        self.events += events


def reported(variant, error, *, increasing_memory):
    subject = ScenarioFile(scenario="s", path="s.py", source_sha256="0", variants=INFOS)
    job = Measure(subject=subject, increasing_memory=increasing_memory)
    reporter = Reporter(RecordingChannel(), job, WorkerPosition(("small", "large")))
    reporter.failed(variant, Stage.BUILD, error)
    (event,) = reporter.channel.events
    return event, reporter.too_large


def refused_allocation():
    try:
        torch.empty(1 << 60, dtype=torch.uint8)
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    "make_error", [MemoryError, refused_allocation, lambda: torch.OutOfMemoryError("CUDA")]
)
def test_the_first_size_that_does_not_fit_is_no_failure_where_sizes_increase(make_error):
    event, too_large = reported("large", make_error(), increasing_memory=True)
    assert isinstance(event, OutOfMemory)
    assert (event.variant, event.stage, too_large) == ("large", Stage.BUILD, "large")


@pytest.mark.parametrize(("variant", "increasing_memory"), [("small", True), ("large", False)])
def test_a_baseline_and_a_scenario_that_declares_no_increase_fail(variant, increasing_memory):
    event, too_large = reported(variant, refused_allocation(), increasing_memory=increasing_memory)
    assert isinstance(event, VariantFailed)
    assert (event.variant, event.kind, too_large) == (variant, FailureKind.OUT_OF_MEMORY, None)


@pytest.fixture
def limits():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield before
    resource.setrlimit(resource.RLIMIT_DATA, before)


def test_free_memory_is_the_limit_and_a_lower_one_stays(limits):
    hard = limits[1]
    expected = psutil.Process().memory_info().data + memory.free_memory()
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    memory.limit_to_free_memory()
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == pytest.approx(expected, rel=0.1)
    lower = expected // 2
    resource.setrlimit(resource.RLIMIT_DATA, (lower, hard))
    memory.limit_to_free_memory()
    assert resource.getrlimit(resource.RLIMIT_DATA) == (lower, hard)
