"""Phases: each instant once, by the innermost, and next to nothing where they are off."""

import threading
import time

import pytest
import torch

from gpulab.engine.build.lab import PhaseRecorder
from gpulab.scenario import ScenarioError


@pytest.fixture
def phases():
    return PhaseRecorder(torch.device("cpu"))


def test_nested_phases_count_once_and_the_innermost_has_the_time(phases):
    started = time.perf_counter()

    def step():
        with phases.phase("data"):
            time.sleep(0.02)
            with phases.phase("useful"):
                time.sleep(0.03)
                with phases.phase("data"):
                    time.sleep(0.01)
        time.sleep(0.02)

    recorded = phases.record(step)
    whole_s = time.perf_counter() - started
    assert set(recorded.wall_s) == {"", "data", "useful"}
    assert 0.08 <= sum(recorded.wall_s.values()) <= whole_s
    assert recorded.wall_s["data"] >= 0.03
    assert recorded.wall_s["useful"] >= 0.03
    # It sleeps all the time.
    assert all(cpu_s < 0.5 * recorded.wall_s[name] for name, cpu_s in recorded.cpu_s.items())


def test_a_step_that_raises_inside_a_phase_leaves_no_phase_behind(phases):
    def step():
        with phases.phase("data"):
            raise RuntimeError("x")

    with pytest.raises(RuntimeError):
        phases.record(step)
    assert set(phases.record(lambda: None).wall_s) == {""}


def test_phases_that_overlap_each_end_by_themselves(phases):
    def step():
        data, useful = phases.phase("data"), phases.phase("useful")
        data.__enter__()
        time.sleep(0.02)
        useful.__enter__()
        time.sleep(0.02)
        data.__exit__(None, None, None)
        time.sleep(0.03)
        useful.__exit__(None, None, None)
        time.sleep(0.01)

    wall_s = phases.record(step).wall_s
    assert wall_s["useful"] >= 0.05  # the one that began last, until it ends
    assert 0.02 <= wall_s["data"] < wall_s["useful"]
    assert wall_s[""] >= 0.01


def test_off_they_only_note_that_there_are_some(phases):
    assert not phases.used
    with phases.phase("data"):
        pass
    assert phases.used
    assert set(phases.record(lambda: None).wall_s) == {""}


def test_other_threads_and_wrong_names_do_not_confuse_them(phases):
    def elsewhere():
        with phases.phase("theirs"):
            time.sleep(0.01)

    def step():
        thread = threading.Thread(target=elsewhere)
        with phases.phase("ours"):
            thread.start()
            thread.join()

    assert set(phases.record(step).wall_s) == {"", "ours"}
    with pytest.raises(ScenarioError, match="1 to 100 visible characters"):
        phases.record(lambda: phases.phase(""))
