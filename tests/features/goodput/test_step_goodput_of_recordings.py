"""Step goodput of runs that were recorded on a GPU, against kernels over the step without the
profiler.
"""

import pytest
import recorded
from partitions import shares

from gpulab.core.run_file import read_run_file
from gpulab.features.goodput.events import Profiled
from gpulab.features.goodput.result import StepSource
from gpulab.headless.scripting import load

ON_GPU = [
    *(name for name in recorded.NAMES if "-h100" in name),
    *sorted(
        f"goodput/{path.name.removesuffix('.jsonl.xz')}"
        for path in recorded.CORPUS.glob("goodput/*.jsonl.xz")
    ),
]
POINTS = 0.05


@pytest.mark.parametrize("name", ON_GPU)
def test_it_is_kernels_over_the_unprofiled_step(name, tmp_path):
    path = recorded.run_file(name, tmp_path)
    profiled = {
        event.variant: event for event in read_run_file(path).events if isinstance(event, Profiled)
    }
    for variant in load(path).variants:
        if variant.name not in profiled:
            continue
        goodput, event = variant.goodput, profiled[variant.name]
        kernels_s = event.partition.seconds["useful"] / event.steps
        assert goodput.goodput == pytest.approx(
            min(1.0, kernels_s / variant.clocks_s["wall"]), abs=POINTS
        )
        assert sum(goodput.seconds.values()) == pytest.approx(goodput.step_s)
        assert sum(goodput.partition.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "variant", "before", "share"),
    [
        ("batched_matmul-h100-1", "loop", 0.26, 0.55),
        ("batched_matmul-h100-1", "bmm", 0.46, 0.87),
        ("cuda_graphs-h100-1", "eager", 0.07, 0.11),
        ("cuda_graphs-h100-1", "graphed", 0.86, 0.90),
        ("goodput/cache_footprint-h100-1", "half", 0.32, 0.70),
        ("sync_every_step-h100-2", "item_each", 0.12, 0.25),
    ],
)
def test_a_step_that_the_profiler_lengthens_has_the_share_of_the_step_without_it(
    name, variant, before, share, tmp_path
):
    path = recorded.run_file(name, tmp_path)
    (event,) = (
        event
        for event in read_run_file(path).events
        if isinstance(event, Profiled) and event.variant == variant
    )
    assert shares(event.partition)["useful"] == pytest.approx(before, abs=0.01)
    goodput = load(path).variant(variant).goodput
    assert goodput.goodput == pytest.approx(share, abs=0.01)
    assert (goodput.reliable, goodput.step_source) == (True, StepSource.ROUNDS)


@pytest.mark.parametrize("name", ON_GPU)
def test_what_is_called_reliable_is_reconciled(name, tmp_path):
    for variant in recorded.report_of(name, tmp_path).variants:
        goodput = variant.goodput
        if goodput is None or goodput.goodput is None:
            continue
        assert goodput.reliable == (goodput.uncertainty <= POINTS)
        assert bool(goodput.reasons) == (not goodput.reliable or goodput.overhead > 0.1)


def test_kernels_that_ran_longer_than_the_step_are_unreliable_or_of_the_profilers_own_step(
    tmp_path,
):
    (overlapped,) = (
        variant
        for variant in recorded.report_of("double_buffering-h100", tmp_path).variants
        if variant.name == "overlapped"
    )
    assert [reason.code for reason in overlapped.goodput.reasons] == ["busy_exceeds_step"]
    capped = recorded.report_of("precision-h100-1", tmp_path).variant("tf32").goodput
    assert (capped.reliable, capped.step_source) == (True, StepSource.PROFILER)
    assert capped.goodput > 0.95


def test_a_step_that_takes_another_time_by_itself_is_unreliable(tmp_path):
    goodput = recorded.report_of("channels_last-h100-1", tmp_path).variant("channels_last").goodput
    (reason,) = goodput.reasons
    assert (reason.code, reason.values["by"], goodput.reliable) == (
        "goodput_uncertain",
        "solo run",
        False,
    )
    assert goodput.uncertainty == pytest.approx(
        abs(reason.values["goodput"] - reason.values["other"])
    )
