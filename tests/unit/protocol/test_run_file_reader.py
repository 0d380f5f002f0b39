"""A run file is read while it grows: each event once, in its order, however it is cut into
pieces.
"""

from contextlib import closing

import pytest
from found import finding
from hypothesis import given
from hypothesis import strategies as st
from recorded import SMALL_RUN, write_run

from gpulab.core.run_file import RunFileError, RunFileReader


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run") / "run.jsonl").read_bytes()


@given(cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_it_gives_each_event_once_whatever_the_pieces(data, tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("pieces") / "run.jsonl"
    path.touch()
    reader = RunFileReader(path)
    events = []
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    with path.open("ab") as file:
        for start, end in zip([0, *ends], ends, strict=False):
            file.write(data[start:end])
            file.flush()
            events += reader.take()
            assert reader.cut is (data[:end][-1:] not in (b"\n", b""))
    reader.close()
    assert events == list(SMALL_RUN)
    assert reader.findings == []


def test_half_a_line_waits_for_its_rest(data, tmp_path):
    path = tmp_path / "run.jsonl"
    first_end = data.index(b"\n", data.index(b"\n") + 1) + 1
    path.write_bytes(data[: first_end - 10])
    reader = RunFileReader(path)
    assert reader.take() == []
    assert reader.cut
    assert reader.header.version == 2
    with path.open("ab") as file:
        file.write(data[first_end - 10 : first_end])
    assert reader.take() == list(SMALL_RUN[:1])
    assert not reader.cut
    assert reader.take() == []
    reader.close()


def test_an_empty_file_is_no_error_yet_and_half_a_header_neither(data, tmp_path):
    path = tmp_path / "run.jsonl"
    path.touch()
    reader = RunFileReader(path)
    assert reader.take() == []
    assert reader.header is None
    path.write_bytes(data[:10])
    assert reader.take() == []
    reader.close()


def test_a_file_of_another_kind_or_of_a_newer_version_is_refused_at_its_first_line(data, tmp_path):
    path = tmp_path / "run.jsonl"
    for content, message in (
        (b"hello\n", "not a run file"),
        (data.replace(b'"version":2', b'"version":3', 1), "version 3"),
    ):
        path.write_bytes(content)
        with closing(RunFileReader(path)) as reader, pytest.raises(RunFileError, match=message):
            reader.take()


def test_garbled_lines_keep_their_numbers_over_several_pieces(data, tmp_path):
    path = tmp_path / "run.jsonl"
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + b"not an event\n" + lines[2][:5])
    reader = RunFileReader(path)
    assert reader.take() == list(SMALL_RUN[:1])
    with path.open("ab") as file:
        file.write(lines[2][5:] + b'{"type":"Later"}\n' + b"{}\n" + b"".join(lines[3:]))
    assert reader.take() == list(SMALL_RUN[1:])
    assert (reader.garbled, reader.unknown) == ([3, 6], 1)
    assert reader.findings == [
        finding("garbled_lines", lines=["3", "6"]),
        finding("unknown_events", count=1),
    ]
    reader.close()
