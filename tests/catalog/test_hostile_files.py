"""One file never keeps the others from being listed, nor takes the machine: each is an entry, most
with an error.
"""

import os
import time
import warnings

import msgspec
import pytest
from hostile_files import ACCEPTED, REFUSED, scenario

from gpulab.catalog import catalog as catalogs
from gpulab.catalog.catalog import catalog, find, read_file
from gpulab.catalog.view import lesson, listing
from gpulab.cli import main

HANGS_S = 10
GOOD = scenario("params={'n': 1}")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPULAB_SCENARIOS", raising=False)


def entry_of(path):
    """Read in less than a guard against hangs; its row can be shown and encoded."""
    started = time.monotonic()
    entry = read_file(path)
    row = entry.row
    msgspec.json.encode(row)
    assert "\x1b" not in listing([row]).plain
    assert lesson(row)
    assert time.monotonic() - started < HANGS_S
    return entry


@pytest.mark.parametrize("name", REFUSED)
def test_a_text_that_is_too_much_is_an_entry_with_an_error(tmp_path, name):
    text, message = REFUSED[name]
    path = tmp_path / "x.py"
    path.write_bytes(text.encode())
    assert message in entry_of(path).error.message


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_odd_text_is_read_and_nothing_is_printed(tmp_path, name, recwarn):
    warnings.simplefilter("always")
    path = tmp_path / "x.py"
    path.write_bytes(ACCEPTED[name].encode())
    entry = entry_of(path)
    assert entry.error is None
    assert entry.source.encode() == path.read_bytes()
    assert entry.title.isprintable()
    assert "\n" not in entry.row.claim
    assert not recwarn.list


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: path.symlink_to("nowhere"), "No such file"),
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: path.write_bytes(b"a\n" * 5_000_000), "larger than 1000000 bytes"),
        (lambda path: path.write_bytes(b"# \xe9\nx = '\xff'"), "not UTF-8"),
    ],
)
def test_what_is_no_file_of_text_is_an_entry_with_an_error(tmp_path, make, message):
    (tmp_path / "scenarios").mkdir()
    make(tmp_path / "scenarios" / "x.py")
    (tmp_path / "scenarios" / "y.py").write_text(GOOD)
    assert message in entry_of(tmp_path / "scenarios" / "x.py").error.message
    entries = {entry.name: entry for entry in catalog()}
    assert entries["y"].scenario
    assert message in " ".join(str(entry.error) for entry in entries.values())


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"\xff\xfe.py", r"\udcff\udcfe"),
        ("a\x1b[31mb.py", "ab"),
        ("a\nb.py", "a b"),
        ("a\u202eb.py", "a\ufffdb"),
    ],
)
def test_a_name_of_odd_characters_is_shown_safely(tmp_path, name, shown):
    path = tmp_path / os.fsdecode(name)
    path.write_text(GOOD)
    entry = entry_of(path)
    assert entry.name == shown
    assert entry.row.path.isprintable()
    assert (entry.error is not None) == isinstance(name, bytes)
    if entry.error:
        assert str(entry.error) == "line 1: its path is not UTF-8; rename the file or folder"


@pytest.mark.parametrize(
    "places", ["~nobody_of_this_name", "/proc/1/fd", "a" * 5000, "nowhere", "\udcff"]
)
def test_places_that_cannot_be_read_hold_nothing(tmp_path, monkeypatch, places):
    monkeypatch.setenv("GPULAB_SCENARIOS", os.pathsep.join([places, str(tmp_path / "mine")]))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "y.py").write_text(GOOD)
    assert find("y").scenario


def test_a_file_that_hides_another_says_so(tmp_path, monkeypatch):
    shipped = catalogs.folders()[-1]
    (tmp_path / "scenarios").mkdir()
    mine = tmp_path / "scenarios" / "batched_matmul.py"
    mine.write_text(GOOD)
    hides = find("batched_matmul").hides
    assert hides.code == "hides_another"
    assert hides.values == {
        "file": str(mine),
        "hidden": str(shipped.resolve() / mine.name),
        "lesson": True,
    }
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "y.py").write_text(GOOD)
    (tmp_path / "scenarios" / "y.py").write_text(GOOD)
    monkeypatch.setenv("GPULAB_SCENARIOS", str(tmp_path / "own"))
    assert find("y").hides.values["lesson"] is False
    assert find("small_kernels").hides is None
    assert catalog([tmp_path / "own"])[0].hides.values["hidden"] == str(
        tmp_path / "scenarios" / "y.py"
    )
    assert (
        f"    this is {mine}, which hides the shipped lesson"
        in listing([find(mine.stem).row]).plain
    )


@pytest.mark.parametrize(
    "arguments", [["--list"], ["--list", "."], ["--run", "."], ["--run", "x.py"]]
)
def test_a_folder_that_was_deleted_is_no_traceback(tmp_path, monkeypatch, arguments):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(arguments) == (0 if arguments == ["--list"] else 2)


def test_whatever_goes_wrong_is_an_error_of_that_file_alone(tmp_path, monkeypatch):
    def fails(source):
        raise RecursionError

    monkeypatch.setattr(catalogs, "read_text", fails)
    (tmp_path / "x.py").write_text(GOOD)
    assert "RecursionError" in entry_of(tmp_path / "x.py").row.error
