"""A run file loads wherever it was cut, and says what it could not read."""

from pathlib import Path

import pytest

from gpulab.model import events as e
from gpulab.model.conclude import run_result
from gpulab.model.request import RunRequest, VariantInfo
from gpulab.model.state import fold_all
from gpulab.run.record import RecordError, RunFile, at_home, read


@pytest.fixture
def recorded(tmp_path):
    file = RunFile(tmp_path / "deep" / "run.jsonl", "0.1.0")
    infos = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
    request = RunRequest(scenario="µ", path="s.py", source_sha256="0", variants=infos)
    file.append([e.RunStarted(request=request, at="", host="h")])
    file.append([e.Log(lines=["é\ud7ff"]), e.Noticed(text="n")])
    file.append([e.Stopped(reason="width"), e.RunEnded(outcome="done")])
    file.close()
    return file.path


def test_what_is_written_is_read_back(recorded):
    found = read(recorded)
    assert [type(event).__name__ for event in found.events] == ["RunStarted", "Log", "Noticed", "Stopped", "RunEnded"]
    assert (found.unknown, found.garbled, found.cut, found.problems) == (0, [], False, [])
    assert found.header.version == 1


def test_a_file_cut_at_any_byte_loads(recorded):
    data = recorded.read_bytes()
    header = data.index(b"\n") + 1
    whole = read(recorded).events
    for size in range(len(data)):
        recorded.write_bytes(data[:size])
        if size < header:
            with pytest.raises(RecordError, match="no complete line"):
                read(recorded)
            continue
        found = read(recorded)
        assert found.garbled == []
        assert found.events == whole[: len(found.events)]
        assert found.cut is (data[size - 1 : size] != b"\n")
        result = run_result(fold_all(found.events))
        assert result.outcome == ("interrupted" if found.events else "failed")
    assert len(found.events) == len(whole) - 1


def test_an_unknown_type_is_skipped_and_counted_and_a_garbled_line_is_named(recorded):
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join([*lines[:3], b'{"type":"Later","t":1.0}\n', b"\x00garb\xffled\n", *lines[3:]]))
    found = read(recorded)
    assert (found.unknown, found.garbled) == (1, [5])
    assert len(found.events) == 5
    assert found.problems[0].startswith("line 5 is garbled")


def test_a_newer_version_is_refused_by_name(recorded):
    data = recorded.read_bytes().replace(b'"version":1', b'"version":7', 1)
    recorded.write_bytes(data.replace(b'"gpulab":"0.1.0"', b'"gpulab":"9.2"', 1))
    with pytest.raises(RecordError, match=r"version 7, written by gpulab 9\.2"):
        read(recorded)


@pytest.mark.parametrize("data", [b"{}\n", b"hello\n", b"\xff\xfe\n", b'{"format":"other"}\n'])
def test_another_file_is_refused(tmp_path, data):
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(RecordError, match="not a run file"):
        read(path)


def test_a_run_is_never_overwritten(recorded):
    with pytest.raises(FileExistsError):
        RunFile(recorded, "0.1.0")


def test_a_path_below_home_is_shown_without_the_folder_s_name(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert at_home(Path("/home/someone/state/run.jsonl")) == "~/state/run.jsonl"
    assert at_home(Path("/home/someone-else/run.jsonl")) == "/home/someone-else/run.jsonl"
