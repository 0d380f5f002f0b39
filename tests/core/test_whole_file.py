"""A file of results is there as a whole or not at all."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulab.core.files import check_writable, write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_check_leaves_everything_as_it_was(tmp_path):
    (tmp_path / "old.json").write_text("old")
    check_writable(tmp_path / "old.json")
    check_writable(tmp_path / "new.json")
    with pytest.raises(FileNotFoundError):
        check_writable(tmp_path / "folder" / "new.json")
    assert names(tmp_path) == ["old.json"]
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
        write_whole(pipe, b"data")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(pipe)
    write_whole(pipe, b"data")
    assert os.read(reader, 10) == b"data"
    os.close(reader)


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_a_pipe_is_written_to_by_its_descriptor(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    reader, writer = os.pipe()
    Path("link").symlink_to(f"/dev/fd/{writer}")
    path = Path(name.format(writer))
    check_writable(path)
    write_whole(path, b"data")
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"data"


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_a_file_that_is_open_is_written_to_at_its_end_and_never_replaced(
    tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    with Path("out").open("wb", buffering=0) as file:
        file.write(b"table\n")
        Path("link").symlink_to(f"/dev/fd/{file.fileno()}")
        path = Path(name.format(file.fileno()))
        check_writable(path)
        write_whole(path, b"data")
        assert os.fstat(file.fileno()).st_nlink == 1
    assert Path("out").read_bytes() == b"table\ndata"


MOUNTED = """
import sys; from pathlib import Path; from gpulab.core.files import check_writable, write_whole
check_writable(Path("out.json")); write_whole(Path("out.json"), b"data")
"""


@pytest.mark.skipif(
    not shutil.which("unshare")
    or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0,
    reason="needs a mount namespace",
)
@pytest.mark.parametrize("read_only", ["", "mount -o remount,ro,bind folder; ! touch folder/x"])
def test_a_file_that_is_a_mount_point_is_overwritten(tmp_path, read_only):
    """As in a container, whose folders may be read-only too."""
    (tmp_path / "real").write_text("something old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "out.json").touch()
    script = (
        f"mount --bind folder folder; {read_only}\nmount --bind real folder/out.json; cd folder; "
        'exec "$@"'
    )
    command = ["unshare", "-rm", "sh", "-ec", script, "sh", sys.executable, "-c", MOUNTED]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "real").read_bytes() == b"data"
    assert names(tmp_path / "folder") == ["out.json"]


def test_what_a_killed_process_left_is_in_nobodys_way(tmp_path):
    (tmp_path / f".gpulab-{os.getpid()}.partial").touch()  # numbers of processes come again
    check_writable(tmp_path / "out.json")
    write_whole(tmp_path / "out.json", b"data")


def test_a_check_is_not_the_end_of_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        check_writable(pipe)
        write_patiently(pipe, b"data")
        assert reader.communicate(timeout=60)[0] == b"data"


def write_patiently(pipe, data):
    """Once its reader is there: OSError until then."""
    for _ in range(6000):
        try:
            return write_whole(pipe, data)
        except OSError:
            time.sleep(0.01)
    raise AssertionError("nobody reads the pipe")
