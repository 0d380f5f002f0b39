"""What a scenario prints: its first and last thousand lines, made safe, with the count of those
between them.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.limits import RUN_FILE_LINE_BYTES
from gpulab.core.wire import encode
from gpulab.session.streams import CapturedOutput


def captured(*pieces):
    """(lines, lines left out) of everything that was printed."""
    output = CapturedOutput()
    logs = [log for piece in pieces for log in output.take(piece)] + output.end()
    return [line for log in logs for line in log.lines], sum(log.skipped for log in logs)


def test_the_first_lines_come_at_once_and_the_last_at_the_end():
    output = CapturedOutput()
    (log,) = output.take(b"a\nb")
    assert log.lines == ["a"]
    assert output.take(b"\n" * 999)[0].lines == ["b", *[""] * 998]
    assert output.take(b"later\n") == []
    (log,) = output.end()
    assert (log.lines, log.skipped) == (["later"], 0)
    assert captured(b"a\nb", b"c\n") == (["a", "bc"], 0)
    assert captured(b"no newline") == (["no newline"], 0)


@pytest.mark.parametrize(("count", "skipped"), [(1000, 0), (2000, 0), (2001, 1), (5000, 3000)])
def test_of_a_flood_the_ends_are_kept_and_the_rest_is_counted(count, skipped):
    lines, left_out = captured(*(f"{number}\n".encode() for number in range(count)))
    assert left_out == skipped
    assert len(lines) == min(count, 2000)
    assert (lines[0], lines[-1]) == ("0", str(count - 1))


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_however_it_is_cut_nothing_is_lost_and_nothing_drives_a_terminal(pieces):
    lines, _ = captured(*pieces)
    whole, _ = captured(b"".join(pieces))
    assert lines == whole
    assert not [letter for line in lines for letter in line if letter < " " and letter != "\t"]


def test_a_progress_bar_is_its_last_state_and_a_line_without_end_is_cut():
    assert captured(b"10%\r50%\r100%\r\nnext\n")[0] == ["100%", "next"]
    assert [len(line) for line in captured(b"x" * 10000, b"more")[0]] == [4096, 4]


def test_lines_that_are_no_text_fit_into_lines_of_the_run_file():
    output = CapturedOutput()
    logs = [log for _ in range(2100) for log in output.take(b"\xff" * 4096 + b"\n")] + output.end()
    assert max(len(encode(log)) for log in logs) < RUN_FILE_LINE_BYTES / 2
    assert sum(len(log.lines) for log in logs) == 2000
    assert sum(log.skipped for log in logs) == 100
