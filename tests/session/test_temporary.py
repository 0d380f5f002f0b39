"""Temporary folders go with their process; those of a process that was killed, with a later one."""

import os
import subprocess
import sys
import tempfile
import time

from gpulab.session.temporary import temporary_folder

KILLED = """
import os
from gpulab.session.temporary import temporary_folder
with temporary_folder() as folder:
    (folder / "copy").mkdir()
    (folder / "copy" / "file").touch()
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_left_is_removed_once_it_is_old(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
    (left,) = tmp_path.iterdir()
    other = tmp_path / "gpulab-other"
    other.mkdir()
    long_ago = time.time() - 100_000
    with temporary_folder() as held:
        assert left.exists()  # it is young
        for path in (left, held, other):
            os.utime(path, (long_ago, long_ago))
        with temporary_folder() as second:
            assert {*tmp_path.iterdir()} == {held, other, second}
    assert [*tmp_path.iterdir()] == [other]
