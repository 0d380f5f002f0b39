"""A saved run on a clock of its own: what has been taken is always what had come by then."""

from itertools import pairwise
from math import inf

import pytest
from recorded import SMALL_RUN, recorded_path, write_run

from gpulab.catalog.recordings import recordings
from gpulab.catalog.todays import with_todays_text
from gpulab.core import events as e
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.report.build import fold_all, new_state
from gpulab.session.playback import SPEEDS, Playback


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def playback(clock):
    return Playback(recorded_path("older/pinned_memory"), clock)


def events_of(path):
    """With the lesson as it is told today, and the note that says so."""
    return with_todays_text(path, read_run_file(path).events)


def taken(playback):
    return len(playback.take())


def test_it_plays_at_its_own_speed_or_another_and_pauses(playback, clock):
    every = len(events_of(playback.path))
    clock.now += 10
    assert playback.position_s == 10
    first = taken(playback)
    assert 0 < first < every
    assert taken(playback) == 0
    for _ in range(2):
        playback.change_speed(1)
    clock.now += 2
    assert (playback.speed, playback.position_s) == (4, 18)
    assert not playback.toggle()
    clock.now += 1000
    assert (playback.playing, playback.position_s) == (False, 18)
    playback.toggle()
    clock.now += 1
    assert playback.position_s == 22
    for _ in SPEEDS:
        playback.change_speed(-1)
    clock.now += 4
    assert (playback.speed, playback.position_s) == (0.25, 23)
    for _ in SPEEDS:
        playback.change_speed(1)
    assert playback.speed == inf
    assert first + taken(playback) == every
    assert playback.ended
    assert not playback.playing
    assert playback.toggle()  # from the start
    assert taken(playback) == every


def test_seeking_back_gives_everything_again_and_forward_only_what_is_new(playback):
    playback.toggle()
    assert not playback.seek(40)
    whole = playback.take()
    assert not playback.seek(50)
    whole += playback.take()
    assert playback.seek(40)
    playback.take()
    playback.seek(50)
    playback.take()
    assert playback.seek(0)
    assert playback.seek(50) is False
    assert playback.take() == whole
    playback.seek(1e9)
    assert playback.position_s == playback.duration_s
    playback.seek(-5)
    assert playback.position_s == 0


def test_events_that_came_late_keep_their_place_in_the_file(tmp_path):
    started, *others = SMALL_RUN
    late = e.Log(t=0.5, lines=["late"])
    path = write_run(tmp_path / "late.jsonl", [started, *others[:2], late, *others[2:]])
    playback = Playback(path)
    playback.toggle()
    playback.seek(0.1)
    assert playback.take() == [started]
    playback.seek(playback.duration_s)
    assert [started, *playback.take()] == read_run_file(path).events
    with pytest.raises(RunFileError, match="no beginning"):
        Playback(write_run(tmp_path / "none.jsonl", others))


def test_the_stages_of_all_recordings_are_in_order_and_the_last_state_is_that_of_the_file():
    for path in recordings():
        playback = Playback(path)
        assert all(before.at_s <= mark.at_s for before, mark in pairwise(playback.marks))
        assert len(playback.marks) > 5
    playback.toggle()
    state = new_state()
    for share in (0.1, 0.5, 1.0):
        playback.seek(share * playback.duration_s)
        for event in playback.take():
            state.fold(event)
    whole = fold_all(read_run_file(path).events)
    assert (state.t, state.outcome, len(state.variants)) == (
        whole.t,
        whole.outcome,
        len(whole.variants),
    )


def test_while_it_plays_the_stage_before_is_not_the_one_that_has_just_begun(playback, clock):
    playback.seek_stage(1)
    playback.seek_stage(1)
    clock.now += 0.5
    playback.seek_stage(-1)
    assert playback.stage == "load"


def test_step_by_step_it_comes_to_the_end_with_every_event_once(playback):
    every = events_of(playback.path)
    playback.step()
    whole = playback.take()
    steps = 1
    while not playback.ended:
        before_s = playback.position_s
        playback.step()
        assert playback.position_s > before_s
        whole += playback.take()
        steps += 1
    assert whole == every
    assert 100 < steps < len(every)
