"""`--fleet`: the table of a folder, its JSON, and the exit codes of the program."""

import json
import subprocess
import sys

import pytest
import written_fleet
from scripted import CommandLine


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    return CommandLine(lab, monkeypatch, capsys)


def test_a_folder_is_a_table_of_outliers_and_json(lab, gpulab):
    folder = lab.folder / "results"
    gpus = written_fleet.fleet(12, 21, ["slow_hbm"])
    written_fleet.write(folder, gpus, 21)
    written_fleet.spoil(folder)
    process = gpulab("--fleet", "results")
    assert process.code == 8
    assert process.stdout.startswith("12 GPUs on 12 hosts, 12 run files: 1 outlier\n")
    assert "slow HBM" in process.stdout
    assert "skipped foreign.jsonl: is not a run file" in process.stdout
    process = gpulab("--fleet", "results", "--json", "--ascii")
    assert process.code == 8
    document = json.loads(process.stdout)
    assert (document["schema"], document["outcome"]) == ("gpulab.fleet/1", "outliers")
    (outlier,) = [gpu for gpu in document["gpus"] if gpu["outlier"]]
    assert outlier["cause"]["sentence"].startswith("slow HBM")


def test_a_folder_that_is_not_there_or_empty(lab, gpulab):
    assert gpulab("--fleet", "nowhere").code == 2
    (lab.folder / "empty").mkdir()
    process = gpulab("--fleet", "empty")
    assert process.code == 3
    assert "no run file could be read in empty" in process.stdout


def test_it_measures_nothing(gpulab):
    process = gpulab("--fleet", "folder", "--quick")
    assert process.code == 2
    assert "--fleet does not take" in process.stderr


WITHOUT = """
import sys
sys.modules["gpulab.features.fleet"] = None
from gpulab.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_its_folder_it_says_so_and_all_else_works(lab):
    def gpulab_without(*arguments):
        command = [sys.executable, "-c", WITHOUT, *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=lab.folder, env=lab.env)

    process = gpulab_without("--fleet", "folder")
    assert process.returncode == 2
    assert "--fleet is not installed: there is no gpulab.features.fleet" in process.stderr
    assert gpulab_without("--list").returncode == 0
    assert json.loads(gpulab_without("--replay", "batched_matmul", "--json").stdout)["runs"]
