"""What a variant's windows, its time and its roof say together of where its time goes."""

import pytest
from found import finding

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, Checked, OtherClock, RunStarted, WorkerReady
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.statuses import BoundKind, Cache, Clock
from gpulab.features.goodput.events import Operation, Partition, Phases, Profiled
from gpulab.features.goodput.report import goodput_of
from gpulab.features.goodput.result import StepSource
from gpulab.features.roofline.bound import Point
from gpulab.report.build import fold_all

STEPS = 10
TIME = Estimate(value=1e-3, low=0.9e-3, high=1.1e-3)
CHECKED = Checked(variant="v", ok=True)
SUBJECT = ScenarioFile(
    scenario="s", path="s.py", source_sha256="0", variants=(VariantInfo(name="v"),)
)


def state(kind="cpu", **job):
    request = RunRequest(job=Measure(subject=SUBJECT, **job))
    device = Device(kind=kind, name="d")
    start = RunStarted(request=request, at="", host="")
    return fold_all([start, WorkerReady(pid=1, device=device, environment={})])


def profiled(
    *,
    useful=0.5,
    copies=0.1,
    copied=0.0,
    on_device=False,
    plain_s=1e-3,
    profiled_s=1e-3,
    again=None,
    **changes,
):
    """Ten steps of one millisecond; shares of the window. `again` is the useful share of a second
    recording.
    """
    partition = recording(useful, copies, profiled_s, on_device=on_device, copied=copied)
    return Profiled(
        variant="v",
        steps=STEPS,
        plain_s=plain_s,
        profiled_s=profiled_s,
        partition=partition,
        repeated=None
        if again is None
        else recording(again, copies, profiled_s, on_device=on_device),
        operations=[
            Operation(name="mm", calls=20, self_s=4e-3, share=0.4, shapes="", on_device=on_device)
        ],
        **{"repeatable": True, **changes},
    )


def recording(useful, copies, step_s, *, on_device, copied=0.0):
    """What records an operation falls outside all of them."""
    window_s = step_s * STEPS
    seconds = {"useful": useful, "copies": copies, "other": 1 - useful - copies}
    beside = {} if on_device else {"around": {"other": 1.0}}
    return Partition(
        window_s=window_s,
        seconds={name: share * window_s for name, share in seconds.items()},
        marked=True,
        on_device=on_device,
        copied_s=copied * window_s,
        **beside,
    )


def variant(**changes):
    """The state of one after these events, by default those of one that is right and profiled."""
    built = Built(variant="v", build_s=0.1, first_step_s=0.1, items=8.0)
    run = state()
    for event in {"built": built, "checked": CHECKED, "profiled": profiled(), **changes}.values():
        if event is not None:
            run.fold(event)
    return run.variants["v"]


def point(fraction):
    return Point(
        variant="v",
        dtype="fp32",
        unit="B/s",
        rate=Estimate(value=1e9),
        roof="",
        source="",
        attainable=1e10,
        fraction=Estimate(value=fraction),
        bound=BoundKind.MEMORY,
        reason=finding("near_memory_roof"),
    )


def goodput(variant, run=None, time=TIME, point=None):
    return goodput_of(run or state(), variant, time, point)


def test_phases_alone_are_shares_of_all_their_windows():
    start = RunStarted(request=RunRequest(job=Measure(subject=SUBJECT)), at="", host="")
    windows = [
        Phases(
            variant="v",
            steps=1,
            seconds={"data": 1.5, name: 0.5},
            running_s={"data": 0.3, name: 0.4},
        )
        for name in ("", "x")
    ]
    run = fold_all([start, *windows])
    report = goodput(run.variants["v"], run)
    assert (report.goodput, report.reliable) == (None, None)
    assert report.phases == {"data": 0.75, "": 0.125, "x": 0.125}
    assert report.running == pytest.approx({"data": 0.2, "": 0.8, "x": 0.8})
    assert report.waiting == ["data"]
    assert run.variants["v"].last(Phases).steps == 2


def test_a_reliable_window():
    report = goodput(variant())
    assert report.goodput == pytest.approx(0.5)
    assert sum(report.partition.values()) == pytest.approx(1)
    assert (report.marked, report.reliable, report.steps) == (True, True, STEPS)
    assert report.reasons == []
    (row,) = report.operations
    assert (row.calls, row.self_s, row.share) == (2, pytest.approx(4e-4), 0.4)  # of a step


def test_recordings_that_differ_are_unreliable():
    report = goodput(variant(profiled=profiled(repeatable=False)))
    assert not report.reliable
    assert report.reasons == [finding("recordings_differ", "v")]


def test_a_gpu_of_which_nothing_was_recorded_is_unreliable():
    report = goodput(variant(), state("cuda"))
    assert (report.reliable, report.reasons) == (False, [finding("device_not_recorded", "v")])
    assert goodput(variant(profiled=profiled(on_device=True)), state("cuda")).reliable


@pytest.mark.parametrize(("profiled_s", "codes"), [(1.09e-3, []), (1.3e-3, ["profiler_overhead"])])
def test_an_overhead_above_a_tenth_leaves_the_goodput_reliable_and_its_idle_parts_approximate(
    profiled_s, codes
):
    report = goodput(
        variant(
            profiled=profiled(profiled_s=profiled_s, useful=0.5 * 1e-3 / profiled_s, copies=0.0)
        )
    )
    assert report.goodput == pytest.approx(0.5)
    assert report.overhead == pytest.approx(profiled_s / 1e-3 - 1)
    assert report.reliable
    assert [reason.code for reason in report.reasons] == codes
    assert all(reason.values == {"overhead": report.overhead} for reason in report.reasons)


@pytest.mark.parametrize(
    ("job", "plain_s", "step_s", "source"),
    [
        ({}, 1.2e-3, 1e-3, StepSource.ROUNDS),  # CUPTI was in that process by then
        ({}, 0.98e-3, 1e-3, StepSource.ROUNDS),
        # and no host's clock beside it
        ({"clock": Clock.DEVICE}, 1.2e-3, 1.2e-3, StepSource.PROFILER),
        ({"cache": Cache.COLD}, 1.2e-3, 1.2e-3, StepSource.PROFILER),
    ],
)
def test_on_a_gpu_kernels_keep_their_seconds_in_the_step_that_was_measured(
    job, plain_s, step_s, source
):
    recorded = variant(
        profiled=profiled(
            plain_s=plain_s, profiled_s=1.25e-3, useful=0.4, copies=0.0, on_device=True
        )
    )
    report = goodput(recorded, state("cuda", **job))
    assert (report.step_s, report.step_source) == (pytest.approx(step_s), source)
    assert report.seconds == pytest.approx(
        {"useful": 0.5e-3, "copies": 0.0, "other": step_s - 0.5e-3}
    )
    assert report.goodput == pytest.approx(0.5e-3 / step_s)
    assert report.operations[0].share == pytest.approx(4e-4 / step_s)
    assert report.reliable


def test_the_other_clock_times_the_step_where_the_verdict_is_the_devices():
    recorded = variant(
        profiled=profiled(
            on_device=True, profiled_s=1.9e-3, plain_s=1.8e-3, useful=0.4, copies=0.0
        ),
        other=OtherClock(variant="v", clock=Clock.WALL, times_s=[1.5e-3, 1.6e-3, 1.7e-3]),
    )
    report = goodput(recorded, state("cuda", clock=Clock.DEVICE))
    assert (report.step_s, report.goodput) == (1.6e-3, pytest.approx(0.76 / 1.6))


@pytest.mark.parametrize("on_device", [False, True])
def test_two_recordings_whose_goodput_differs_by_more_than_five_points_are_unreliable(on_device):
    run = state("cuda" if on_device else "cpu")
    for again, reliable in ((0.53, True), (0.57, False)):
        report = goodput(variant(profiled=profiled(again=again, on_device=on_device)), run)
        assert (report.reliable, report.uncertainty) == (reliable, pytest.approx(again - 0.5))
        assert [(reason.code, reason.values["by"]) for reason in report.reasons] == (
            [] if reliable else [("goodput_uncertain", "second recording")]
        )


def test_phases_that_were_timed_without_the_profiler_must_agree_on_a_cpu():
    for useful_s, reliable in ((0.52, True), (0.6, False)):
        phases = Phases(
            variant="v",
            steps=9,
            seconds={"useful": useful_s, "": 1 - useful_s},
            running_s={"useful": useful_s, "": 1 - useful_s},
        )
        report = goodput(variant(phases=phases))
        assert report.reliable == reliable


def test_a_process_that_runs_twice_as_slowly_leaves_the_share_of_its_step_in_doubt():
    report = goodput(variant(profiled=profiled(plain_s=2e-3, profiled_s=2e-3)))
    assert (report.goodput, report.step_s) == (pytest.approx(0.5), TIME.value)
    assert (report.reliable, report.uncertainty) == (False, pytest.approx(0.25))


def test_efficiency_is_of_the_useful_part():
    report = goodput(variant(), point=point(0.25))
    assert report.efficiency == pytest.approx(0.5)
    assert goodput(variant(profiled=profiled(useful=0.0)), point=point(0.25)).efficiency is None
    for without in (
        goodput(variant()),
        goodput(variant(), state(cache=Cache.COLD), point=point(0.25)),
    ):
        assert without.efficiency is None


@pytest.mark.parametrize("roof", ["host to device", "device to host"])
def test_below_a_link_it_means_nothing(roof):
    report = goodput(variant(), state(roof=roof), point=point(0.25))
    assert report.efficiency is None


def test_hidden_is_the_share_of_copies_behind_something_better():
    assert goodput(variant(profiled=profiled(copies=0.1, copied=0.4))).hidden == pytest.approx(0.75)
    assert goodput(variant(profiled=profiled(copies=0.4, copied=0.4))).hidden == 0
    assert goodput(variant()).hidden is None


def test_items_count_once_their_output_was_found_right():
    assert goodput(variant()).items_per_s == pytest.approx(8e3)
    for checked in (None, Checked(variant="v", ok=False)):
        assert goodput(variant(checked=checked)).items_per_s is None
    assert goodput(variant(), time=None).items_per_s is None
