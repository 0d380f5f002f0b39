"""The live screen of a recorded run at several sizes: nothing moves, every frame is closed, and it is
full.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import recorded_path

from gpulab.features.live.narrowing import first_interval, look
from gpulab.features.live.progress import one_line
from gpulab.features.live.screen import live_view, places
from gpulab.features.replay.view import Origin, ReplayPosition, replay_line
from gpulab.report.live import live_run
from gpulab.session.playback import Playback
from gpulab.session.run import Run

SIZES = [(54, 10), (78, 19), (118, 35), (158, 45), (198, 45)]


def moments(name):
    playback = Playback(recorded_path(name), lambda: 0.0)
    run = Run(playback)
    for share in (0.3, 0.6, 0.9):
        playback.seek(share * playback.duration_s)
        run.poll()
        yield live_run(run.report, run.state)


@pytest.mark.parametrize("size", SIZES)
def test_panels_stay_where_they_are_and_leave_no_row_empty(size):
    width, height = size
    layouts = [places(live, width, height) for live in moments("h200/training_step")]
    assert layouts[0] == layouts[1] == layouts[2]
    rows = {place.row + row for place in layouts[0] for row in range(place.height)}
    assert rows == set(range(1, height))


def test_frames_are_closed_where_there_is_room_for_them():
    for live in moments("h200/training_step"):
        lines = live_view(live, width=118, height=35, chosen="confidence").plain.split("\n")
        text = "\n".join(lines)
        assert text.count("╭") == text.count("╮") == text.count("╰") == text.count("╯") > 4
        assert any("▸confidence" in line for line in lines)
        small = live_view(live, width=78, height=19).plain
        assert "╭" not in small
        assert "── confidence" in small.replace("─  ", "── ")


def test_a_log_says_how_wide_the_first_interval_is_at_least():
    playback = Playback(recorded_path("h200/pinned_memory"), lambda: 0.0)
    run = Run(playback)
    playback.seek(0.5 * playback.duration_s)
    run.poll()
    line = one_line(live_run(run.report, run.state))
    assert re.search(r"process [4-7] .*pinned \S+ .s .*about \S+x \(\S+ to \S+ or wider\)", line)


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8), st.integers(0, 8))
def test_the_first_interval_is_as_wide_as_was_said_before_it(ratios, done):
    said = first_interval(ratios[:done])
    assert bool(said) == (3 <= done < 8)
    if said:
        low, high = map(float, said.removesuffix(" or wider").split(" to "))
        interval = look(ratios, 8)
        assert interval.low <= low * 1.01
        assert interval.high >= high * 0.99


@pytest.mark.parametrize("width", [79, 119, 199])
def test_the_bar_of_a_replay_keeps_its_place(width):
    def line(at_s, stage, speed, *, playing=True):
        position = ReplayPosition(at_s, 80.0, [(20.0, True)], stage, speed, playing)
        return replay_line(position, Origin(None, {}, "2026-11-23T10:00"), width)

    lines = [
        line(0.0, "load", 1.0),
        line(50.0, "build pinned_non_blocking", 0.25),
        line(80.0, "profile", 16.0, playing=False),
    ]
    assert len({(line.index("┼"), line.index("replay"), len(line)) for line in lines}) == 1
    assert len(lines[0]) == width
