"""`--device all`: each alone, then all together. Here two runs on the CPU stand for two GPUs."""

import json
from dataclasses import replace

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import ExitCode
from gpulab.features.devices.report import overlap
from gpulab.headless import devices as mode
from gpulab.headless.options import Options
from gpulab.session.launch import single_launch
from gpulab.session.settings import UsageError

OPTIONS = Options(time_s=0.3, telemetry="off")


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


def test_without_a_gpu_it_is_refused(gpulab, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    process = gpulab("--run", "mine.py", "--device", "all")
    assert process.code == 2
    assert "--device all: there is no GPU here (--device cpu runs on the CPU): " in process.stderr
    process = gpulab("--run", "mine.py", "--device", "all", "--repeat", "2")
    assert "--device all and --repeat: one or the other" in process.stderr


def test_each_runs_alone_and_then_all_at_once(lab, gpulab, capsys):
    launch = single_launch("mine.py")
    options = replace(OPTIONS, output=lab.folder / "runs", json=str(lab.folder / "all.json"))
    assert mode.measure(launch, ["cpu", "cpu"], options) == ExitCode.MEASURED
    printed = capsys.readouterr()
    assert "2 GPUs, each alone, then all together" in printed.out
    assert "all 2 together" in printed.err
    files = sorted(str(file.relative_to(lab.folder)) for file in lab.folder.glob("runs/*/*"))
    assert files == [
        f"runs/{phase}/mine-{number}.jsonl" for phase in ("alone", "together") for number in (0, 1)
    ]
    document = json.loads((lab.folder / "all.json").read_text())
    assert len(document["runs"]) == 4
    assert [entry["variant"] for entry in document["devices"]] == ["before", "after"] * 2
    for entry in document["devices"]:
        assert entry["cost"] == entry["together"]["median"] / entry["alone"]["median"]
        assert 0 <= entry["overlap"] <= 1
    starts = [read_run_file(lab.folder / file).events[0].t for file in files]
    ends = [read_run_file(lab.folder / file).events[-1].t for file in files]
    assert starts[1] >= ends[0]  # alone
    assert starts[3] < ends[2]  # together


def test_one_gpu_runs_alone_only(lab, gpulab, capsys):
    options = replace(OPTIONS, output=lab.folder / "runs")
    assert mode.measure(single_launch("mine.py"), ["cpu"], options) == ExitCode.MEASURED
    printed = capsys.readouterr()
    assert "one GPU: there is no other, and it ran alone only" in printed.out
    assert [file.parent.name for file in lab.folder.glob("runs/*/*")] == ["alone"]


def test_a_scenario_that_cannot_run_is_refused_before_any_run(lab, gpulab):
    lab.write("gpu_only.py", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    with pytest.raises(UsageError, match="gpu_only cannot run on cpu"):
        mode.measure(single_launch("gpu_only.py"), ["cpu"], OPTIONS)


def test_overlap_is_of_the_rounds_that_all_measured_in():
    spans = [(0.0, 10.0), (4.0, 12.0)]
    assert [overlap(spans, number) for number in (0, 1)] == [0.6, 0.75]
    assert overlap([(0.0, 1.0), (2.0, 3.0)], 0) == 0.0
    assert overlap([(1.0, 1.0)], 0) is None
