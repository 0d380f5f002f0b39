"""`--watch` without a terminal follows a run of another process, and prints what it gave; `--share`
puts run files where others can.
"""

import os
import stat
import subprocess
import threading

import pytest
from conftest import GPULAB
from recorded import recorded_path
from scripted import SCENARIO, CommandLine

from gpulab.core.run_file import RunFile, read_run_file


def test_a_run_is_followed_to_its_end_and_printed_as_a_replay_prints_it(lab):
    path = lab.folder / "run.jsonl"
    events = read_run_file(recorded_path("h200/batched_matmul")).events
    run = RunFile(path, "0.1.0")
    run.append(events[:-1])
    end = threading.Timer(0.8, lambda: run.append(events[-1:]))
    end.start()
    watched = subprocess.run(
        [*GPULAB, "--watch", lab.folder],
        env=lab.env,
        cwd=lab.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    end.join()
    run.close()
    assert "watching batched_matmul: " in watched.stderr
    assert "watched; it ended at" in watched.stderr
    assert watched.stdout == lab.call("--replay", path).stdout


@pytest.mark.parametrize(
    ("umask", "folder_mode", "mode", "says"),
    [
        (0o022, 0o755, "-rw-r--r--", "others watch with: gpulab --watch "),
        (0o027, 0o750, "-rw-r-----", "others watch with: gpulab --watch "),
        (0o077, 0o755, "-rw-------", "the umask hides them; umask 027 first shows them"),
        (0o022, 0o700, "-rw-r--r--", "others cannot look into "),
    ],
)
def test_a_shared_run_file_is_as_readable_as_umask_and_folder_say(
    lab, monkeypatch, capsys, umask, folder_mode, mode, says
):
    lab.write("mine.py", SCENARIO)
    folder = lab.folder / "class"
    folder.mkdir()
    for place in (lab.folder, *lab.folder.parents[:3]):  # as those of a class are
        place.chmod(place.stat().st_mode | 0o055)
    folder.chmod(folder_mode)
    command = CommandLine(lab, monkeypatch, capsys)
    before = os.umask(umask)
    try:
        shared = command(
            "--run", "mine.py", "--device", "cpu", "--telemetry", "off", "--share", folder
        )
    finally:
        os.umask(before)
    assert shared.code == 0
    assert says in shared.stderr
    (file,) = folder.iterdir()
    assert stat.filemode(file.stat().st_mode) == mode
    assert f"run file: {file}" in shared.stdout
    refused = command("--run", "mine.py", "--share", lab.folder / "none")
    assert (refused.code, "there is no such folder" in refused.stderr) == (2, True)
