"""What a variant's windows, its time and its roof say together of where its time goes."""

import pytest

from gpulab.model.events import Built, Checked, Phases, Profiled
from gpulab.model.goodput import Partition
from gpulab.model.operations import Operation
from gpulab.model.request import Device, RunRequest, VariantInfo
from gpulab.model.result import Time
from gpulab.model.roofline import Point
from gpulab.model.spending import goodput_of
from gpulab.model.state import RunState, VariantState

STEPS = 10
TIME = Time(median=1e-3, low=0.9e-3, high=1.1e-3)
CHECKED = Checked(variant="v", when="before", ok=True)


def state(kind="cpu", **asked):
    request = RunRequest(scenario="s", path="s.py", source_sha256="0", variants=(VariantInfo(name="v"),), **asked)
    return RunState(request=request, device=Device(kind=kind, name="d"))


def profiled(*, useful=0.5, copies=0.1, copied=0.0, on_device=False, plain_s=1e-3, profiled_s=1.05e-3, same=True):
    """Of ten steps of one millisecond; shares of the window."""
    seconds = {"useful": useful, "copies": copies, "other": 1 - useful - copies}
    window_s = 1e-3 * STEPS
    return Profiled(
        variant="v",
        steps=STEPS,
        plain_s=plain_s,
        profiled_s=profiled_s,
        partition=Partition(
            window_s=window_s,
            seconds={name: share * window_s for name, share in seconds.items()},
            marked=True,
            on_device=on_device,
            copied_s=copied * window_s,
        ),
        operations=[Operation(name="mm", calls=20, self_s=4e-3, share=0.4, shapes="", on_device=on_device)],
        same=same,
    )


def variant(**changes):
    built = Built(variant="v", build_s=0.1, first_step_s=0.1, items=8.0)
    return VariantState(VariantInfo(name="v"), built=built, **{"checked": CHECKED, "profiled": profiled(), **changes})


def at(fraction):
    return Point(
        variant="v",
        dtype="fp32",
        unit="B/s",
        rate=1e9,
        roof="",
        source="",
        attainable=1e10,
        fraction=fraction,
        bound="",
        why="",
    )


def of(one, run=None, time=TIME, placed=None):
    return goodput_of(run or state(), one, time, placed)


def test_nothing_was_marked_and_nothing_profiled():
    assert of(variant(profiled=None)) is None


def test_phases_alone_are_shares_of_their_windows():
    windows = [Phases(variant="v", steps=1, seconds={"data": 1.5, name: 0.5}, ran={"data": 0.3}) for name in ("", "x")]
    found = of(variant(profiled=None, phases=windows[1].after(windows[0].after(None))))
    assert (found.goodput, found.reliable) == (None, None)
    assert found.phases == {"data": 0.75, "": 0.125, "x": 0.125}
    assert found.ran == {"data": pytest.approx(0.2)}


def test_a_window_that_can_be_believed():
    found = of(variant())
    assert found.goodput == pytest.approx(0.5)
    assert sum(found.partition.values()) == pytest.approx(1)
    assert (found.marked, found.reliable, found.why, found.steps) == (True, True, None, STEPS)
    (row,) = found.operations
    assert (row.calls, row.self_s, row.share) == (2, pytest.approx(4e-4), 0.4)  # of a step


def test_recordings_that_differ_are_unreliable():
    found = of(variant(profiled=profiled(same=False)))
    assert not found.reliable
    assert "different operations" in found.why


def test_a_gpu_of_which_nothing_was_recorded_is_unreliable():
    assert "the host's time" in of(variant(), state("cuda")).why
    assert not of(variant(), state("cuda")).reliable
    assert of(variant(profiled=profiled(on_device=True)), state("cuda")).reliable


@pytest.mark.parametrize(("profiled_s", "told"), [(1.09e-3, None), (1.3e-3, "30% longer")])
def test_what_the_profiler_costs_is_said_above_a_tenth(profiled_s, told):
    found = of(variant(profiled=profiled(profiled_s=profiled_s)))
    assert found.overhead == pytest.approx(profiled_s / 1e-3 - 1)
    assert found.reliable
    assert (told or "") in (found.why or "")
    assert bool(found.why) == bool(told)


@pytest.mark.parametrize(
    ("kind", "asked", "plain_s", "overhead"),
    [
        ("cuda", {}, 1.2e-3, 0.2),  # CUPTI was in that process by then
        ("cuda", {}, 0.8e-3, 0.5),
        ("cuda", {"clock": "device"}, 1.2e-3, 0.0),
        ("cuda", {"cache": "cold"}, 1.2e-3, 0.0),
        ("cpu", {}, 1.2e-3, 0.0),
    ],
)
def test_a_step_without_the_profiler_is_the_shorter_of_two_on_a_gpu(kind, asked, plain_s, overhead):
    one = variant(profiled=profiled(plain_s=plain_s, profiled_s=1.2e-3, on_device=kind == "cuda"))
    assert of(one, state(kind, **asked)).overhead == pytest.approx(overhead, abs=1e-12)


def test_efficiency_is_of_the_useful_part_and_the_product_of_the_whole_step():
    found = of(variant(), placed=at(0.25))
    assert found.efficiency == pytest.approx(0.5)
    assert found.product == pytest.approx(found.goodput * found.efficiency)
    assert of(variant(profiled=profiled(useful=0.0)), placed=at(0.25)).efficiency is None
    for nothing in (of(variant()), of(variant(), state(cache="cold"), placed=at(0.25))):
        assert (nothing.efficiency, nothing.product) == (None, None)


@pytest.mark.parametrize("roof", ["host to device", "device to host"])
def test_below_a_link_only_the_product_means_something(roof):
    found = of(variant(), state(roof=roof), placed=at(0.25))
    assert found.efficiency is None
    assert found.product == pytest.approx(0.25)


def test_hidden_is_the_share_of_copies_behind_something_better():
    assert of(variant(profiled=profiled(copies=0.1, copied=0.4))).hidden == pytest.approx(0.75)
    assert of(variant(profiled=profiled(copies=0.4, copied=0.4))).hidden == 0
    assert of(variant()).hidden is None


def test_items_count_once_their_output_was_found_right():
    assert of(variant()).items_per_s == pytest.approx(8e3)
    for checked in (None, Checked(variant="v", when="after", ok=False)):
        assert of(variant(checked=checked)).items_per_s is None
    assert of(variant(), time=None).items_per_s is None
