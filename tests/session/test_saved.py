"""Saved runs by name."""

import os

import pytest
from recorded import recorded_path, run_file

from gpulab.catalog.recordings import recordings
from gpulab.headless.scripting import load
from gpulab.options import UsageError
from gpulab.session.run_files import runs_folder
from gpulab.session.saved import find_run, open_run


@pytest.fixture
def two_runs():
    """Of one scenario, the older one first."""
    runs_folder().mkdir(parents=True)
    first = run_file("healthy", runs_folder())
    second = first.with_name("later.jsonl")
    second.write_bytes(first.read_bytes().replace(b'"at":"20', b'"at":"21', 1))
    return load(first).scenario, first, second


def test_a_scenario_names_its_newest_run_here_and_those_before_it(two_runs):
    name, first, second = two_runs
    assert find_run(name) == second
    assert find_run(f"{name}~1") == first
    with pytest.raises(UsageError, match=f"2 runs of {name} here"):
        find_run(f"{name}~2")


def test_a_recording_ships_of_what_has_not_run_here():
    assert open_run("divergence").report.device.name == "NVIDIA H200"
    assert find_run("h100/precision") in recordings()


@pytest.mark.parametrize("name", ["nothing", "nothing.jsonl", "nothing~1"])
def test_what_is_no_run_is_said(name):
    with pytest.raises(UsageError, match="there is no"):
        find_run(name)


def test_what_is_no_regular_file_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for link, target in (("nowhere", "nothing"), ("zero", "/dev/zero"), ("itself", "itself.jsonl")):
        (tmp_path / f"{link}.jsonl").symlink_to(target)
    os.mkfifo("pipe.jsonl")
    for name, words in (
        ("nowhere", "No such file"),
        ("itself", "Too many levels"),
        ("zero", "not a regular file"),
        ("pipe", "not a regular file"),
    ):
        with pytest.raises(UsageError, match=rf"{name}.jsonl: {words}"):
            open_run(f"{name}.jsonl")


def test_a_packed_file_that_is_cut_off_is_damaged(tmp_path):
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes(recorded_path("older/coalescing").read_bytes()[:20_000])
    with pytest.raises(UsageError, match="damaged"):
        open_run(str(path))
