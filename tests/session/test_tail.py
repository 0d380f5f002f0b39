"""A run file that grows is followed as it comes, and what becomes of it is said."""

import subprocess
import sys
from os import truncate

import pytest
from recorded import SMALL_RUN, write_run

from gpulab.core.run_file import RunFile
from gpulab.core.wire import encode
from gpulab.session import tail
from gpulab.session.active_runs import RunsFolder
from gpulab.session.tail import Following, TailSource

HOST = SMALL_RUN[0].host


@pytest.fixture
def writer(tmp_path, monkeypatch):
    """Of a run of this host; the lock is asked for at every look."""
    monkeypatch.setenv("GPULAB_HOST", HOST)
    monkeypatch.setattr(tail, "_QUIET_S", 0.0)
    file = RunFile(tmp_path / "run.jsonl", "0.1.0")
    yield file
    file.close()


def test_events_come_as_they_are_written_a_cut_line_once_it_is_whole_and_the_end_ends(writer):
    followed = TailSource(writer.path)
    assert followed.take() == []
    assert followed.standing == Following.WAITING
    writer.append(SMALL_RUN[:2])
    late = TailSource(writer.path)
    assert followed.take() == late.take() == [*SMALL_RUN[:2]]
    line = encode(SMALL_RUN[2])
    writer._write(line[:10])
    assert followed.take() == []
    writer._write(line[10:] + b"garbled\n")
    assert followed.take() == [SMALL_RUN[2]]
    assert followed.standing == Following.UNDER_WAY
    assert not followed.ended
    writer.append(SMALL_RUN[3:])
    assert followed.take() == [*SMALL_RUN[3:]]
    assert (followed.standing, followed.ended) == (Following.ENDED, True)
    assert "line" in str(followed.findings)
    assert followed.findings[0].values["lines"] == ["5"]
    assert late.take() == [*SMALL_RUN[2:]]


def test_a_file_that_comes_later_or_goes_is_followed_to_the_end_of_its_writer(writer):
    followed = TailSource(writer.path.with_name("later.jsonl"))
    assert followed.take() == []
    assert "waiting for a run in" in followed.words
    write_run(followed.path)
    assert followed.take() == [*SMALL_RUN]
    followed = TailSource(writer.path)
    writer.append(SMALL_RUN[:2])
    assert len(followed.take()) == 2
    writer.path.unlink()
    assert followed.take() == []
    assert "deleted" in followed.words
    writer.append(SMALL_RUN[2:])
    assert len(followed.take()) == len(SMALL_RUN) - 2
    assert followed.standing == Following.ENDED


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: truncate(path, 60), "was cut short while it was followed"),
        (lambda path: path.write_text("another\n"), "was cut short while it was followed"),
    ],
)
def test_a_file_that_is_spoiled_keeps_what_was_read_and_says_so(writer, spoil, words):
    writer.append(SMALL_RUN[:2])
    followed = TailSource(writer.path)
    assert len(followed.take()) == 2
    spoil(writer.path)
    assert followed.take() == []
    assert followed.standing == Following.LOST
    assert words in followed.words
    assert "run_file_cut" in str(followed.findings)


def test_what_is_no_run_file_and_what_may_not_be_read_is_said(tmp_path):
    text = tmp_path / "text.jsonl"
    text.write_text("hello\n")
    followed = TailSource(text)
    assert followed.take() == []
    assert "is not a run file" in followed.words
    followed = TailSource(tmp_path)
    assert followed.take() == []
    assert (followed.standing, "not a regular file" in followed.words) == (Following.WAITING, True)


def test_the_death_of_the_writer_is_seen_on_its_host_and_is_silence_elsewhere(
    tmp_path, monkeypatch
):
    """By the lock alone, which the system takes from a process however it dies."""
    monkeypatch.setenv("GPULAB_HOST", HOST)
    monkeypatch.setattr(tail, "_QUIET_S", 0.0)
    path = tmp_path / "run.jsonl"
    write_run(tmp_path / "whole.jsonl", SMALL_RUN[:2])
    program = (
        "import sys, pathlib; from gpulab.core.run_file import RunFile; "
        "file = RunFile(pathlib.Path(sys.argv[1]), 'g'); "
        "file._write(b''.join(open(sys.argv[2], 'rb').readlines()[1:])); print(flush=True); "
        "sys.stdin.read()"
    )
    arguments = [sys.executable, "-c", program, path, tmp_path / "whole.jsonl"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        here, elsewhere = TailSource(path), TailSource(path)
        assert len(here.take()) == len(elsewhere.take()) == 2
        assert [here.take(), here.standing, here.words] == [[], Following.UNDER_WAY, "watched"]
        assert RunsFolder(tmp_path).scan()[0].goes_on
        process.kill()
    assert here.take() == []
    assert here.standing == Following.DIED
    assert here.words.startswith("the run's process died")
    assert [finding.code for finding in here.findings] == ["runner_died"]
    assert not any(run.goes_on for run in RunsFolder(tmp_path).scan())
    monkeypatch.setenv("GPULAB_HOST", "another")
    monkeypatch.setattr(tail, "_SILENT_S", 0.0)
    assert elsewhere.take() == []
    assert (elsewhere.standing, elsewhere.ended) == (Following.SILENT, False)
    assert "whether its process lives is unknown" in elsewhere.words
