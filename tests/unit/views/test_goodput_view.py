"""Goodput as it is shown: bars and their letters, the columns, phases, and notes that weaken it."""

import pytest
from conftest import printed
from run_reports import CPU, profiled, two_variants

from gpulab.protocol.device import Device
from gpulab.protocol.finding import finding
from gpulab.views.goodput import goodput, phases
from gpulab.views.summary import summary
from gpulab.views.text import Glyphs

GLYPHS = Glyphs()
HALF = {"goodput": 0.5, "partition": {"useful": 0.5, "copies": 0.1, "other": 0.4}, "items_per_s": 1234.0}


def in_one_line(renderable, width=80):
    """As printed, with its lines joined."""
    return " ".join(printed(renderable, width).split())


@pytest.mark.parametrize(
    ("shares", "bar"),
    [
        ({"other": 0.5, "": 0.5}, "." * 15 + "O" * 15),
        ({"alloc": 0.5, "preempted": 0.5}, "A" * 15 + "P" * 15),
        ({"other busy": 0.2, "data wait": 0.2, "": 0.6}, "." * 18 + "O" * 6 + "D" * 6),
        ({"data": 0.2, "copy": 0.2, "sync": 0.2, "useful": 0.4}, "u" * 12 + "c" * 6 + "d" * 6 + "s" * 6),
    ],
)
def test_a_phase_called_as_a_part_of_the_labs_own_is_still_the_authors(shares, bar):
    text = printed(phases(profiled(("v", {"phases": shares})), GLYPHS))
    assert bar in text.split()
    assert "O=other 50%" in text or "other" not in shares


def test_a_phase_that_hardly_runs_waits():
    values = {"phases": {"data": 0.4, "useful": 0.6}, "running": {"data": 0.03, "useful": 0.99}, "waiting": ["data"]}
    assert "u=useful 60%, d=data 40% (waits)" in printed(phases(profiled(("v", values)), GLYPHS))


def test_shares_of_phases_of_a_gpu_are_upper_bounds():
    values = {"phases": {"useful": 1.0}}
    on_gpu = profiled(("v", values), device=Device(kind="cuda", name="H200"))
    assert printed(phases(on_gpu, GLYPHS)).startswith("phase share, an upper bound")
    assert printed(phases(profiled(("v", values), device=CPU), GLYPHS)).split("\n")[0].rstrip() == "phase share"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_share_of_a_phase_is_cut(width):
    names = [f"phase_of_the_step_number_{number}" for number in range(9)]
    values = {"phases": {"useful": 0.1, **dict.fromkeys(names, 0.1)}}
    head, first, *rest = printed(phases(profiled(("a_variant_with_a_long_name", values)), GLYPHS), width).splitlines()
    shares_at = first.index("u=useful")
    shares = "".join(line[shares_at:].strip() for line in (first, *rest)).replace(" ", "")
    assert all(len(line) <= width for line in (head, first, *rest))
    assert shares.split(",")[0] == "u=useful10%"
    assert [share.partition("=")[2] for share in shares.split(",")[1:]] == [f"{name}10%" for name in names]


def test_a_column_is_there_where_any_variant_has_it_and_all_fit():
    text = in_one_line(goodput(profiled(("v", HALF)), GLYPHS))
    assert "hidden" not in text
    assert "nothing is marked useful (lab.useful()), so everything that torch computes counts" in text
    more = {"hidden": 0.75, "product": 0.3}
    both = goodput(profiled(("v", HALF), ("a_rather_long_name", HALF | more)), GLYPHS)
    assert "hidden: the share of copies behind other work" in in_one_line(both)
    (row,) = [line for line in printed(both).splitlines() if line.startswith("a_rather")]
    assert row.split()[-5:] == ["u" * 15 + "c" * 3 + "." * 12, "30%", "75%", "1.23", "k"]
    every = HALF | more | {"efficiency": 0.6, "peak_bytes": 64 << 20}
    text = printed(goodput(profiled(("a_rather_long_name", every)), GLYPHS))
    for word in ("60%", "30%", "75%", "1.23 k", "64.0 MiB", "u" * 8):
        assert word in text


def test_the_letters_of_the_bars_are_explained():
    text = in_one_line(goodput(profiled(("v", HALF)), GLYPHS))
    assert "u useful, c copies, . other" in text


def test_variants_whose_step_marks_nothing_are_named_beside_those_that_do():
    text = in_one_line(goodput(profiled(("plain", HALF), ("marks", HALF | {"marked": True})), GLYPHS))
    assert "in plain nothing is marked useful" in text
    assert "is marked useful" not in in_one_line(goodput(profiled(("marks", HALF | {"marked": True})), GLYPHS))


def test_what_makes_a_partition_unreliable_is_one_line_for_all_variants():
    slowed = [
        (name, HALF | {"marked": True, "reasons": [finding("profiler_overhead", name, overhead=overhead)]})
        for name, overhead in (("first", 0.3), ("second", 0.55))
    ]
    text = in_one_line(goodput(profiled(*slowed), GLYPHS))
    assert "profiling slowed a step, so that small parts look larger than they are: first by 30%, second by 55%" in text


def test_a_trace_is_named():
    assert "v: trace in /tmp/t.json" in printed(goodput(profiled(("v", HALF | {"trace": "/tmp/t.json"})), GLYPHS))


def test_without_a_profile_there_is_nothing_to_show():
    assert goodput(profiled(("v", {})), GLYPHS) is None
    assert phases(profiled(("v", {})), GLYPHS) is None


def test_an_unreliable_share_is_marked_in_the_summary():
    sure = {"goodput": 0.5, "reliable": True, "accurate": True}
    unreliable = {"goodput": 0.9, "reliable": False, "accurate": False}
    slowed = {
        "goodput": 0.9,
        "reliable": True,
        "accurate": False,
        "reasons": [finding("profiler_overhead", "new", overhead=0.3)],
    }
    text = printed(summary([two_variants(sure, sure)], GLYPHS))
    assert "50% > 50%" in text
    assert "?" not in text
    for other in (unreliable, slowed):
        text = printed(summary([two_variants(sure, other)], GLYPHS))
        assert "50% > 90%?" in text
        assert "? unreliable: see notes" in text
    assert ">" not in printed(summary([two_variants(sure, {})], GLYPHS))
