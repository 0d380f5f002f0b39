"""Where the main thread is: lines that wait, and lines that run what torch does not see."""

import json
import signal
import time
from pathlib import Path

import pytest
from traces import document, op

from gpulab.features.goodput.sampling import Sampler, lines_of
from gpulab.traces.trace import read

TEXT = json.dumps([0.5] * 20_000)


def lines(function, *operations):
    """Of a function that ran beside these operations, the text of each line."""
    sampler = Sampler()
    with sampler.running():
        function()
    found = lines_of(sampler, read(document(*operations)), 60.0)
    text = Path(__file__).read_text().splitlines()
    own = [each for each in found if each.line.startswith("test_sampling.py:")]
    return {text[int(each.line.rpartition(":")[2]) - 1].strip(): each for each in own}


def wait_for_an_answer():
    for _ in range(20):
        time.sleep(0.005)


def decode():
    ends = time.thread_time() + 0.1
    while time.thread_time() < ends:
        json.loads(TEXT)


def test_a_tick_on_its_way_at_the_end_starts_no_timer(monkeypatch):
    """It ended the process, once its handler was gone."""
    set_timer = signal.setitimer

    def late(which, seconds, *interval):
        set_timer(which, seconds, *interval)
        if not seconds:
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(signal, "setitimer", late)
    with Sampler().running():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_wait_is_no_contention_and_has_its_line():
    found = lines(wait_for_an_answer)
    waits = found["time.sleep(0.005)"]
    assert waits.waiting == max(each.waiting for each in found.values()) > 0
    assert waits.function == "wait_for_an_answer"
    assert waits.line.startswith("test_sampling.py:")


def test_what_runs_outside_of_torch_has_the_expression_that_calls_it():
    found = lines(decode)
    longest = max(found, key=lambda text: found[text].running)
    assert longest == "json.loads(TEXT)"
    assert found[longest].running > found[longest].waiting


NUMBERS = list(range(200_000))


def look_up():
    found = 0
    for _ in range(300):
        found += -1 in NUMBERS
        abs(found)


def test_what_an_operator_takes_has_its_expression():
    found = lines(look_up)
    assert max(found, key=lambda text: found[text].running) == "found += -1 in NUMBERS"


def test_what_an_operation_of_torch_takes_is_of_no_line():
    found = lines(decode, op("mm", 0, 10**9))
    assert sum(each.running for each in found.values()) == pytest.approx(0, abs=1e-6)
