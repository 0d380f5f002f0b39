"""Marks: each instant once, by the innermost, and next to nothing where they are off."""

import threading
import time

import pytest
import torch

from gpulab.model.scenario import ScenarioError
from gpulab.worker.marks import Marks


@pytest.fixture
def marks():
    return Marks(torch.device("cpu"))


def test_nested_marks_count_once_and_the_innermost_has_the_time(marks):
    began = time.perf_counter()

    def step():
        with marks.phase("data"):
            time.sleep(0.02)
            with marks.phase("useful"):
                time.sleep(0.03)
                with marks.phase("data"):
                    time.sleep(0.01)
        time.sleep(0.02)

    marks.window(step)
    taken = marks.taken()
    whole = time.perf_counter() - began
    assert set(taken.wall_s) == {"", "data", "useful"}
    assert sum(taken.wall_s.values()) == pytest.approx(whole, rel=0.05)
    assert taken.wall_s["data"] >= 0.03
    assert taken.wall_s["useful"] >= 0.03
    assert all(cpu < 0.5 * taken.wall_s[name] for name, cpu in taken.cpu_s.items())  # it sleeps all the time


def test_a_step_that_raises_inside_a_mark_leaves_no_mark_behind(marks):
    def step():
        with marks.phase("data"):
            raise RuntimeError("x")

    with pytest.raises(RuntimeError):
        marks.window(step)
    marks.window(lambda: None)
    assert set(marks.taken().wall_s) == {""}


def test_phases_that_overlap_each_end_by_themselves(marks):
    def step():
        data, useful = marks.phase("data"), marks.phase("useful")
        data.__enter__()
        time.sleep(0.02)
        useful.__enter__()
        time.sleep(0.02)
        data.__exit__(None, None, None)
        time.sleep(0.03)
        useful.__exit__(None, None, None)
        time.sleep(0.01)

    marks.window(step)
    taken = marks.taken().wall_s
    assert taken["useful"] >= 0.05  # the one that began last, until it ends
    assert 0.02 <= taken["data"] < 0.04
    assert taken[""] >= 0.01


def test_off_they_say_only_that_there_are_some(marks):
    assert not marks.used
    with marks.phase("data"):
        pass
    assert marks.used


def test_other_threads_and_wrong_names_do_not_confuse_them(marks):
    def elsewhere():
        with marks.phase("theirs"):
            time.sleep(0.01)

    def step():
        thread = threading.Thread(target=elsewhere)
        with marks.phase("ours"):
            thread.start()
            thread.join()

    marks.window(step)
    assert set(marks.taken().wall_s) == {"", "ours"}
    with pytest.raises(ScenarioError, match="a phase has a name"):
        marks.window(lambda: marks.phase(""))
