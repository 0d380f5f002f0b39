"""A run file loads wherever it was cut, and says what it could not read."""

import errno
import lzma

import pytest
from found import finding
from recorded import SMALL_RUN, write_run

from gpulab.core import run_file
from gpulab.core.run_file import (
    Lines,
    RunFile,
    RunFileError,
    event_batches,
    is_run_file,
    read_run_file,
)
from gpulab.core.statuses import Conclusion
from gpulab.core.wire import encode
from gpulab.report.build import build_report, fold_all


@pytest.fixture
def path(tmp_path):
    return write_run(tmp_path / "deep" / "run.jsonl")


def test_what_is_written_is_read_back(path):
    recording = read_run_file(path)
    assert recording.events == list(SMALL_RUN)
    assert (recording.unknown, recording.garbled, recording.cut, recording.findings) == (
        0,
        [],
        False,
        [],
    )
    assert is_run_file(path.read_bytes()[:64])
    assert not is_run_file(b'{"format":"other"}')


def test_a_file_cut_at_any_byte_loads(path):
    data = path.read_bytes()
    header = data.index(b"\n") + 1
    whole = read_run_file(path).events
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    sizes = {*range(0, len(data), 7), *(end + step for end in ends for step in (0, 1, 2))}
    for size in sorted(sizes - {len(data), len(data) + 1}):
        path.write_bytes(data[:size])
        if size < header:
            with pytest.raises(RunFileError, match="no complete line"):
                read_run_file(path)
            continue
        recording = read_run_file(path)
        assert recording.garbled == []
        assert recording.events == whole[: len(recording.events)]
        assert recording.cut is (data[size - 1 : size] != b"\n")
        report = build_report(fold_all(recording.events))
        assert report.outcome == (Conclusion.INTERRUPTED if recording.events else Conclusion.FAILED)
    assert len(recording.events) == len(whole) - 1


def test_an_unknown_type_is_skipped_and_counted_and_a_garbled_line_is_numbered(path):
    lines = path.read_bytes().splitlines(keepends=True)
    later = b'{"type":"Later","t":1.0}\n'
    path.write_bytes(b"".join([*lines[:3], later, b"\x00garb\xffled\n", *lines[3:], later]))
    recording = read_run_file(path)
    assert (recording.unknown, recording.garbled) == (2, [5])
    assert recording.events == list(SMALL_RUN)
    assert recording.findings == [
        finding("garbled_lines", lines=["5"]),
        finding("unknown_events", count=2),
    ]


def test_a_line_that_is_too_long_is_one_garbled_line(path, monkeypatch):
    monkeypatch.setattr(run_file, "LONGEST", path.stat().st_size)
    path.write_bytes(
        path.read_bytes() + b"x" * 3 * path.stat().st_size + b"\n" + encode(SMALL_RUN[0])
    )
    recording = read_run_file(path)
    assert recording.garbled == [len(SMALL_RUN) + 2]
    assert recording.events == [*SMALL_RUN, SMALL_RUN[0]]


@pytest.mark.parametrize(
    "event", [b'{"type":"Stopped"}', b'{"type":"Stopped","reason":"boredom"}', b'{"t":1.0}', b"7"]
)
def test_a_broken_event_is_a_garbled_line_too(path, event):
    path.write_bytes(path.read_bytes() + event + b"\n")
    recording = read_run_file(path)
    assert recording.garbled == [len(SMALL_RUN) + 2]
    assert recording.unknown == 0


@pytest.mark.parametrize("version", [7, 1, 0, -1])
def test_another_version_is_refused_by_name(path, version):
    data = path.read_bytes().replace(b'"version":2', f'"version":{version}'.encode(), 1)
    path.write_bytes(data.replace(b'"gpulab":"0.1.0"', b'"gpulab":"9.2"', 1))
    with pytest.raises(
        RunFileError, match=rf"version {version}, written by gpulab 9\.2: this one reads 2"
    ):
        read_run_file(path)


def test_a_run_is_never_overwritten(path):
    data = path.read_bytes()
    with pytest.raises(FileExistsError):
        RunFile(path, "0.1.0")
    assert path.read_bytes() == data


def test_a_file_of_two_writers_says_so(path):
    """The second could not have opened it; on a file system that is shared badly it can."""
    first, *events = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        first + b"".join(line for both in zip(events, events, strict=True) for line in both)
    )
    assert finding("several_runs", count=2) in read_run_file(path).findings
    path.write_bytes(path.read_bytes() + first)
    assert read_run_file(path).garbled == [2 * len(SMALL_RUN) + 2]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_holds_more_than_is_read_is_refused_after_that_much(
    path, tmp_path, monkeypatch, packed
):
    """A megabyte of zeros is 200 bytes when it is packed."""
    monkeypatch.setattr(run_file, "LONGEST", 10_000)
    data = path.read_bytes() + bytes(1 << 21)
    if packed:
        path = tmp_path / "bomb.jsonl.xz"
        data = lzma.compress(data)
    path.write_bytes(data)
    assert next(event_batches(path, Lines(path))) == list(SMALL_RUN)
    with pytest.raises(RunFileError, match=r"holds more than 1 MiB: gpulab reads no more"):
        list(event_batches(path, Lines(path), 1 << 20))


def test_on_a_full_disk_no_empty_file_is_left(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gpulab.core.run_file.os.write", full)
    with pytest.raises(OSError, match="No space"):
        RunFile(tmp_path / "run.jsonl", "0")
    assert [*tmp_path.iterdir()] == []
