"""A file of results is there as a whole or not at all."""

import os
import resource
import signal
import stat
from pathlib import Path

import pytest

from gpulab.headless.whole_file import check_writable, write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_check_leaves_everything_as_it_was(tmp_path):
    (tmp_path / "old.json").write_text("old")
    check_writable(tmp_path / "old.json")
    check_writable(tmp_path / "new.json")
    check_writable(tmp_path / "folder" / "new.json")
    assert names(tmp_path) == ["folder", "old.json"]
    assert names(tmp_path / "folder") == []
    assert (tmp_path / "old.json").read_text() == "old"


def test_it_replaces_a_file_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "out.json"
    write_whole(path, b"first")
    path.chmod(0o640)
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["out.json"]


def test_of_a_link_what_it_stands_for_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "out.json"
    link.symlink_to("folder/real.json")
    check_writable(link)
    write_whole(link, b"data")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "real.json").read_bytes() == b"data"
    assert names(tmp_path / "folder") == ["real.json"]


def test_a_disk_that_is_full_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.json"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_whole(path, bytes(4096))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out.json"]


def test_a_device_and_a_pipe_are_written_to(tmp_path):
    check_writable(Path(os.devnull))
    write_whole(Path(os.devnull), b"data")
    assert not Path(os.devnull).is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No such device"):  # nobody reads it: it would wait for ever
        check_writable(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(pipe)
    write_whole(pipe, b"data")
    assert os.read(reader, 10) == b"data"
    os.close(reader)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
