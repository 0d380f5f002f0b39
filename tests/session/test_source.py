"""A run file as a source of events, whole or cut."""

import pytest
from found import finding
from recorded import SMALL_RUN, write_run

from gpulab.session.run import FileSource


@pytest.fixture
def path(tmp_path):
    return write_run(tmp_path / "run.jsonl")


def test_a_file_gives_everything_at_once_and_has_ended_then(path):
    file = FileSource(path)
    assert not file.ended
    assert file.take() == list(SMALL_RUN)
    assert file.ended
    assert file.take() == []
    assert (file.path, file.findings) == (path, [])


def test_a_file_without_its_end_has_ended_too_and_says_what_it_could_not_read(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"garbled\n", lines[4][:5]]))
    file = FileSource(path)
    assert file.take() == list(SMALL_RUN[:2])
    assert file.ended
    assert file.findings == [finding("garbled_lines", lines=["4"])]
