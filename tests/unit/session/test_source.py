"""Events come alike from a run file that is complete and from one that still grows."""

import pytest
from found import finding
from recorded import SMALL_RUN, write_run

from gpulab.core.run_file import RunFileError
from gpulab.core.wire import encode
from gpulab.session import run as source
from gpulab.session.run import File, Follow


@pytest.fixture
def path(tmp_path):
    return write_run(tmp_path / "run.jsonl")


@pytest.fixture
def growing(path):
    """`write(data)` appends to a file that holds the header of a run and is followed."""
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"\n") + 1])
    follow = Follow(path)

    def write(*pieces):
        with path.open("ab") as file:
            for piece in pieces:
                file.write(piece)

    yield follow, write
    follow.close()


@pytest.fixture
def clock(monkeypatch):
    """The present, which stands still until it is set."""
    present = [100.0]
    monkeypatch.setattr(source, "monotonic", lambda: present[0])
    return present


def test_a_file_gives_everything_at_once_and_has_ended_then(path):
    file = File(path)
    assert not file.ended
    assert file.take() == list(SMALL_RUN)
    assert file.ended
    assert file.take() == []
    assert (file.path, file.findings) == (path, [])


def test_the_present_of_a_file_is_its_last_event(path):
    file = File(path)
    assert file.now() == 2.5
    file.take()
    assert file.now() == 2.5


def test_a_file_without_its_end_has_ended_too_and_says_what_it_could_not_read(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"garbled\n", lines[4][:5]]))
    file = File(path)
    assert file.take() == list(SMALL_RUN[:2])
    assert file.ended
    assert file.findings == [finding("garbled_lines", lines=["4"])]


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(RunFileError, match="not a run file"):
        File(path)
    with pytest.raises(FileNotFoundError):
        File(tmp_path / "nowhere.jsonl")


def test_half_a_line_of_a_growing_file_is_taken_with_its_rest(growing):
    follow, write = growing
    line = encode(SMALL_RUN[0])
    write(line[:20])
    assert follow.take() == []
    write(line[20:], encode(SMALL_RUN[1])[:3])
    assert follow.take() == [SMALL_RUN[0]]
    assert follow.take() == []
    assert not follow.ended
    assert follow.findings == []


def test_it_has_ended_with_the_last_event_of_the_run_and_not_before_it_was_taken(growing):
    follow, write = growing
    write(*map(encode, SMALL_RUN[:-1]))
    follow.take()
    assert not follow.ended
    write(encode(SMALL_RUN[-1]))
    assert not follow.ended
    assert follow.take() == [SMALL_RUN[-1]]
    assert follow.ended
    assert follow.now() == 2.5


def test_a_garbled_line_of_a_growing_file_is_a_finding(growing):
    follow, write = growing
    write(encode(SMALL_RUN[0]), b"garbled\n", b'{"type":"Later"}\n')
    assert follow.take() == [SMALL_RUN[0]]
    assert follow.findings == [
        finding("garbled_lines", lines=["3"]),
        finding("unknown_events", count=1),
    ]


def test_the_present_of_a_growing_file_is_on_the_clock_of_its_events(growing, clock):
    follow, write = growing
    assert follow.now() == 0.0
    write(encode(SMALL_RUN[0]))
    follow.take()
    assert follow.now() == 1.0  # the writer's clock reads 1.0 where this machine's reads 100.0
    clock[0] = 103.0
    assert follow.now() == 4.0


def test_an_event_that_was_long_under_way_does_not_set_the_clock_back(growing, clock):
    follow, write = growing
    write(encode(SMALL_RUN[0]))
    follow.take()
    clock[0] = 110.0
    write(encode(SMALL_RUN[1]))  # written at 1.5, read at what is 11.0 on its clock
    follow.take()
    assert follow.now() == 11.0
    clock[0] = 110.25
    assert follow.now() == 11.25
