"""A run on a disk that is full, end to end: it goes on, says so, and what was written is read."""

import json
import subprocess

import pytest

from gpulab.core.run_file import read_run_file


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 12 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root mounts")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_run_goes_on_and_says_that_its_file_ends(lab, small_disk):
    path = small_disk / "run.jsonl"
    run = ["--run", "batched_matmul", "--smoke", "--device", "cpu", "--profile", "off"]
    done = lab.call(*run, "--output", path, "--json", lab.folder / "r.json")
    assert done.code == 0
    assert "the run file ends here: No space left on device" in done.stdout
    (report,) = json.loads((lab.folder / "r.json").read_text())["runs"]
    assert report["outcome"] == "measured"
    assert 8192 < path.stat().st_size <= 12288
    recording = read_run_file(path)
    assert len(recording.events) > 5
    assert recording.garbled == []
    replayed = lab.call("--replay", path)
    assert replayed.code != 74
    assert "Traceback" not in replayed.stdout + replayed.stderr
    (small_disk / "fills").write_bytes(b"")  # what is left is less than a page
    refused = lab.call(*run, "--output", small_disk / "second.jsonl")
    assert refused.code == 2
    assert "second.jsonl: No space left on device; choose another path" in refused.stderr
    assert not (small_disk / "second.jsonl").exists()
