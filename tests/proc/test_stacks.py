"""The stack of a thread as a process of its own sees it."""

import sys
import time

import pytest

from gpulab.proc.stack_reader import read_from_outside

NUMBERS = list(range(100_000))


def look_up():
    return -1 in NUMBERS


def readings():
    """The innermost frames of the readings while it looks up, and nothing else."""
    with read_from_outside() as stacks:
        if stacks is None:
            pytest.skip("this system, or this Python, does not let a stack be read")
        found = []
        ends = time.monotonic() + 10
        while len(found) < 30 and time.monotonic() < ends:
            for _ in range(20):
                look_up()
            found += stacks.take(sys._getframe())
    return found


def test_an_operator_has_its_line_and_the_lines_of_its_callers():
    found = readings()
    inner = [frame for frame in found if frame.f_code is look_up.__code__]
    assert len(inner) >= 3  # what takes the readings has some of the time
    line = look_up.__code__.co_firstlineno + 1
    assert line in {frame.f_lineno for frame in inner}
    assert {frame.f_back.f_code for frame in inner} == {readings.__code__}


def test_a_frame_has_its_variables_as_long_as_it_goes_on():
    (frame, *_) = [frame for frame in readings() if frame.f_code is look_up.__code__]
    assert frame.f_locals == {}  # it has ended
    assert "stacks" in frame.f_back.f_locals


def test_a_reading_within_the_handler_of_samples_is_none():
    """On a busy machine that is where most are, and its caller's next line had their time."""
    with read_from_outside() as stacks:
        if stacks is None:
            pytest.skip("this system, or this Python, does not let a stack be read")

        def handler(frame):
            time.sleep(0.02)  # for a reading that is on its way
            stacks.take(frame)
            time.sleep(0.1)
            return stacks.take(frame)

        look_up()
        assert handler(sys._getframe()) == []
