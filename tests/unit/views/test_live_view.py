"""The panels of a run that one watches: recorded runs, cut at many moments, at many sizes."""

from functools import cache
from itertools import pairwise
from tempfile import mkdtemp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import run_file
from rich.cells import cell_len

from gpulab.core import events as e
from gpulab.draw.ascii import to_ascii
from gpulab.draw.axis import LogAxis, outwards
from gpulab.features.live.panel import LiveRun
from gpulab.features.live.report import live_detail
from gpulab.features.live.screen import ZOOMED, live_view, places
from gpulab.report.build import build_report, new_state
from gpulab.session.run import File

RUNS = (
    "healthy",
    "precision-h200",
    "standin-gpu",
    "precision-h100-1",
    "fixes",
    "raises",
    "function",
    "crash-late",
    "phases",
)
SIZES = ((60, 16), (80, 20), (120, 36), (200, 46), (20, 3))
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@cache
def events(name):
    return File(run_file(name, mkdtemp())).take()


def at(name, share, predicted=None):
    """The run after this share of its events."""
    state = new_state()
    for event in events(name)[: max(1, round(share * len(events(name))))]:
        state.fold(event)
    report = build_report(state, "run.jsonl", live=True)
    return LiveRun(
        report,
        live_detail(state, [(entry.variant, entry.against) for entry in report.comparisons]),
        predicted,
    )


@pytest.mark.parametrize("name", RUNS)
def test_every_moment_fits_every_size(name):
    for share in SHARES:
        run = at(name, share, predicted=4.0)
        for width, height in SIZES:
            lines = live_view(run, width=width, height=height).plain.split("\n")
            assert len(lines) == height
            assert all(cell_len(line) <= width for line in lines)
            assert all(cell_len(to_ascii(line)) == cell_len(line) for line in lines)


@pytest.mark.parametrize("name", RUNS)
def test_nothing_jumps_while_a_run_goes_on(name):
    for size in SIZES:
        first, *others = [
            [(p.panel.name, p.row, p.column, p.height) for p in places(at(name, share), *size)]
            for share in SHARES
        ]
        assert all(other == first for other in others)


def _placed(run, size):
    return [
        (place.panel.name, place.row, place.column, place.height) for place in places(run, *size)
    ]


@pytest.mark.parametrize("panel", [panel.name for panel in ZOOMED])
def test_each_panel_can_fill_the_screen(panel):
    run = at("precision-h100-1", 0.9)
    text = live_view(run, width=60, height=18, chosen=panel, zoomed=True).plain
    assert len(text.split("\n")) == 18
    assert len(text.split()) > 12, "there is something in it"


def test_panels_lie_apart_and_inside():
    for width, height in SIZES:
        cells = set()
        for place in places(at("precision-h100-1", 0.5), width, height):
            own = {
                (row, column)
                for row in range(place.row, place.row + place.height)
                for column in range(place.column, place.column + place.width)
            }
            assert not own & cells
            cells |= own
        assert all(1 <= row < height and column < width for row, column in cells)


def test_an_interval_stays_as_it_was_when_it_had_as_many_processes():
    """Older rows are what the run showed then, not what is made of them later."""
    recorded = events("precision-h200")
    pairs = [("fp8", "fp32"), ("control", "fp32")]
    whole = live_detail(_folded(recorded), pairs)
    assert list(whole.looks) == pairs
    started = [place for place, event in enumerate(recorded) if isinstance(event, e.ProcessStarted)]
    assert len(started) > 8
    then = live_detail(_folded(recorded[: started[8]]), pairs)
    for pair, looks in whole.looks.items():
        assert looks[0].units == 8
        assert then.looks[pair] == looks[:1]


def _folded(some):
    state = new_state()
    for event in some:
        state.fold(event)
    return state


def test_the_name_of_what_runs_alone_stands_above_its_readings():
    lines = live_view(at("standin-gpu", 1.0), width=120, height=36).plain.split("\n")
    heading = next(place for place, line in enumerate(lines) if line.startswith("── device"))
    variants = at("standin-gpu", 1.0).report.variants
    assert any(f"├{variant.name[:3]}" in lines[heading + 1] for variant in variants)


def test_before_an_interval_stands_the_bars_say_about():
    run = at("healthy", 0.5)
    assert not run.report.comparisons[0].speedup
    text = live_view(run, width=80, height=20).plain
    assert "about " in text
    assert "an interval needs 8 processes" in text


def test_a_promise_stays_hidden_from_those_who_predict():
    run, predicting = at("precision-h100-1", 0.5), at("precision-h100-1", 0.5, predicted=2.0)
    shown, hidden = (live_view(each, width=120, height=36).plain for each in (run, predicting))
    assert run.report.claim in shown
    assert run.report.claim not in hidden
    assert "predicted 2.00x" in hidden


positive = st.floats(1e-12, 1e12)


@given(positive, st.floats(1.001, 1e9), st.integers(20, 160))
def test_ticks_stand_apart_inside_of_their_axis(low, ratio, cells):
    axis = LogAxis(low, low * ratio, cells)
    ticks = axis.ticks(lambda value: f"{value:.4g}")
    ends = [(start, start + len(label)) for start, label in ticks]
    assert all(start >= 0 and end <= cells for start, end in ends)
    assert all(end + 2 <= start for (_, end), (start, _) in pairwise(ends))


@given(positive, st.floats(1.0, 1e6))
def test_ends_move_outwards_to_round_numbers(low, ratio):
    below, above = outwards(low, low * ratio)
    assert below <= low * 1.001
    assert above >= low * ratio * 0.999
    assert above / below <= ratio * 7
