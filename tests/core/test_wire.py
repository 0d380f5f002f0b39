"""Events as lines of JSON: the same back, unknown types told from broken ones, nothing that does
not fit together.
"""

import pytest

from gpulab.core import events as e
from gpulab.core.text import plain
from gpulab.core.wire import decode, encode
from gpulab.features.telemetry.events import TelemetryEnded

SAMPLES = {
    "names": ("a", "b"),
    "complete": 1,
    "epoch": [0, 0],
    "round": [0, 0],
    "variant": [0, 1],
    "times_s": [1.0, 2.0],
    "cpu_s": [1.0, 2.0],
    "faults": [0, 0],
    "switches": [0, 0],
    "ended": [2.0, 3.0],
    "steps": [1, 1],
}


@pytest.mark.parametrize(
    "event",
    [
        e.Samples(t=1.0, **SAMPLES),
        e.Log(t=1.0, lines=["é\ud7ff\n"]),
        TelemetryEnded(t=1.0),
        e.WorkerDone(t=1.0, sent=3),
    ],
)
def test_an_event_comes_back_as_it_was_in_one_line(event):
    line = encode(event)
    assert line.count(b"\n") == 1
    assert decode(line) == event


def test_a_type_that_is_not_known_is_none_and_a_broken_event_an_error():
    assert decode(b'{"type":"Later","t":1.0}') is None
    for line in (b'{"type":"WorkerDone"}', b'{"type":7}', b"[]", b"", b"\xff", b'{"t":1.0}'):
        with pytest.raises(ValueError, match=r"not an event|a broken WorkerDone|a broken 7"):
            decode(line)


@pytest.mark.parametrize(
    "change",
    [
        {"times_s": [1.0]},
        {"ended": [1.0]},
        {"steps": [1, 1], "ended": []},
        {"variant": [0, 2]},
        {"sm_mhz": [1]},
    ],
)
def test_samples_whose_columns_do_not_fit_are_no_event(change):
    with pytest.raises(ValueError, match="do not fit together"):
        e.Samples(**SAMPLES | change)
    line = encode(e.Samples(t=1.0, **SAMPLES)).replace(b'"variant":[0,1]', b'"variant":[0,9]')
    with pytest.raises(ValueError, match="a broken Samples"):
        decode(line)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("bell\x07 \x9b31m", "bell\ufffd \ufffd31m"),
        ("\x1b", ""),
    ],
)
def test_text_of_a_scenario_is_made_safe(text, safe):
    assert plain(text) == safe


@pytest.mark.parametrize(
    "change",
    [
        b'"t":1e999',
        b'"t":NaN',
        b'"sent":-1',
        b'"sent":99999999999999999999',
        b'"sent":1.5',
        b'"rank":-1,"sent":1',
        b'"sent":' + b"[" * 100_000,
    ],
)
def test_numbers_out_of_range_are_no_event(change):
    with pytest.raises(ValueError, match=r"not an event|a broken WorkerDone"):
        decode(b'{"type":"WorkerDone","sent":1,' + change + b"}")


def test_what_is_invisible_stands_as_an_escape_and_comes_back():
    event = e.Log(t=1.0, lines=["\x1b[2J\x7f\u202e\u200b\u2028\U000e0041é\n"])
    line = encode(event)
    assert not [mark for mark in line.decode().rstrip() if not mark.isprintable()]
    assert decode(line) == event
