"""The panels of a run that one watches: recorded runs, cut at many moments, at many sizes."""

import re
from functools import cache
from itertools import pairwise
from tempfile import mkdtemp

import pytest
from conftest import printed
from hypothesis import given
from hypothesis import strategies as st
from recorded import run_file
from rich.cells import cell_len

from gpulab.core import events as e
from gpulab.draw.ascii import to_ascii
from gpulab.draw.axis import LogAxis, outwards
from gpulab.features.live.narrowing import axis_of, counts_of, look
from gpulab.features.live.screen import ZOOMED, live_view, places
from gpulab.report.build import build_report, new_state
from gpulab.report.live import LiveRun, live_detail
from gpulab.session.run import File
from gpulab.show.results import OnScreen, result

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


@cache
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


def _lines(run, size, **options):
    width, height = size
    return live_view(run, width=width, height=height, **options).plain.split("\n")


def test_a_list_beside_the_panels_takes_none_of_them():
    """In a terminal of 100 columns they have about 64."""
    run = at("healthy", 0.9)
    beside, alone = ({place.panel.name for place in places(run, *size)} for size in BOTH)
    assert beside == alone
    assert len(_lines(run, BOTH[0])) == BOTH[0][1]


BOTH = ((64, 27), (97, 27))


@pytest.mark.parametrize("size", [(80, 20), (97, 27), (116, 36), (196, 46)])
def test_each_process_is_a_dot_from_the_first_one_on(size):
    for share in (0.3, 0.4, 0.6, 0.9):
        run = at("precision-h200", share)
        ratios = run.ratios(run.main_comparison) if run.main_comparison else ()
        text = "\n".join(_lines(run, size))
        if ratios:
            assert "●" in text
            assert f"{len(ratios)} now" in text or not run.report.under_way
            assert ("99 % interval" in text) == (len(ratios) >= 8)


def test_rows_of_processes_are_at_most_so_many_and_end_with_all():
    for processes in range(1, 200):
        for rows in range(1, 40):
            counts = counts_of(processes, rows)
            assert len(counts) <= rows
            assert counts[-1] == processes
            assert counts == sorted(set(counts))
    assert counts_of(5, 8) == [1, 2, 3, 4, 5]


def test_the_axis_of_speedups_stays_once_there_is_an_interval():
    ratios = [-0.01 * place * (-1) ** place for place in range(1, 40)]
    ends = {(axis.low, axis.high) for axis in (axis_of(ratios[:n], 60) for n in range(8, 40))}
    assert len(ends) == 1


def test_what_goes_on_before_the_first_process_is_said_with_what_came_so_far():
    start, prepared = (
        live_view(at("precision-h200", share), width=96, height=28).plain for share in (0.0, 0.1)
    )
    assert "importing torch, 0.0 s" in start
    assert "where nothing that ran before can change a time" in start
    assert "not known yet: a variant declares its work when it is built" in start
    for words in ("built in ", "first step ", "checks passed", "start ", "check fp32 "):
        assert words in prepared


def test_panels_that_show_some_of_the_variants_say_how_many_there_are():
    run = at("precision-h200", 0.9)
    assert len(run.variants) == 6
    assert "3 of 6 variants" in "\n".join(_lines(run, (97, 27)))


def test_bars_are_as_high_as_there_are_rows():
    low, high = (_lines(at("fixes", 0.9), size) for size in ((108, 26), (108, 60)))
    assert _rows_of_bars(low) < _rows_of_bars(high)


def _rows_of_bars(lines):
    end = next(place for place, line in enumerate(lines) if "confidence" in line)
    return len([line for line in lines[:end] if "███" in line])


def test_a_prediction_has_a_row_of_its_own():
    lines = _lines(at("precision-h200", 0.9, predicted=3.0), (96, 27))
    (row,) = (line for line in lines if line.startswith("predicted"))
    assert row.split() == ["predicted", "?", "3.00x"] or "◀" in row or "▶" in row


@pytest.mark.parametrize(
    ("name", "share", "to_come"),
    [("healthy", 0.9, True), ("healthy", 1.0, False), ("precision-h200", 0.9, False)],
)
def test_roofs_that_are_to_be_measured_give_no_fraction(name, share, to_come):
    """The second run has them from an earlier one, on a GPU."""
    drawn = live_view(at(name, share), width=60, height=18, chosen="roofline", zoomed=True).plain
    assert ("measured after the rounds" in " ".join(drawn.split())) == to_come
    assert ("FLOP/B" in drawn or "FLOP/s" in drawn) != to_come, drawn


def test_labels_of_the_axis_lie_apart_from_what_is_right_of_it():
    run = at("phases", 0.5)
    for width in range(50, 60):
        text = live_view(run, width=width, height=12, chosen="confidence", zoomed=True).plain
        head = next(line for line in text.split("\n") if line.startswith("processes"))
        labels, caption = re.fullmatch(r"processes(.*?)((?:99|from) .*)", head).groups()
        assert labels.endswith("  "), caption


def test_a_wide_result_has_its_processes_beside_it():
    run = at("precision-h200", 1.0)
    wide, narrow = (
        printed(result(run.report, screen=OnScreen(run, width, "run.jsonl")), width=width)
        for width in (124, 100)
    )
    first = wide.split("\n")[0]
    assert first.startswith("precision · ")
    assert "── confidence: " in first
    assert "process medians" in wide
    assert "confidence" not in narrow
    assert all(cell_len(line) <= 124 for line in wide.split("\n"))


def test_zoomed_panels_have_their_keys_below():
    lines = _lines(at("healthy", 0.9), (100, 28), chosen="times", zoomed=True)
    assert "z all panels" in lines[-1]
    assert "another panel" in lines[-1]


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
    assert list(whole.ratios) == pairs
    started = [place for place, event in enumerate(recorded) if isinstance(event, e.ProcessStarted)]
    assert len(started) > 8
    then = live_detail(_folded(recorded[: started[8]]), pairs)
    for pair, ratios in whole.ratios.items():
        assert len(ratios) > len(then.ratios[pair]) == 8
        assert look(ratios, 8) == look(then.ratios[pair], 8)
        assert look(ratios, 7) is None


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
    assert "from 8 on: 99 %" in text


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
