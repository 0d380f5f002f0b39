"""`--calibrate` and `--plot`: ceilings as a table, a roofline and JSON; pictures for slides."""

import json
import sqlite3
import struct
from contextlib import closing
from functools import partial

import pytest
from recorded import report_of
from scripted import SCENARIO, CommandLine
from workers import WORKERS

from gpulab.headless import written
from gpulab.headless.export import export
from gpulab.headless.output import open_terminal
from gpulab.options import UsageError
from gpulab.session.store import NAME
from gpulab.show.display import as_file
from gpulab.show.figures import figures_of


def test_a_calibration_prints_caches_and_writes_what_the_device_can_do(lab, monkeypatch, capsys):
    gpulab = CommandLine(lab, monkeypatch, capsys)
    options = (
        "--telemetry",
        "off",
        "--json",
        "out.json",
        "--output",
        "run.jsonl",
        "--plot",
        "out.svg",
    )
    process = gpulab("--calibrate", "--device", "cpu", *options)
    assert process.code == 0, process.stderr
    result = process.result
    assert (result["schema"], result["outcome"], result["exit_code"]) == (
        "gpulab.ceilings/1",
        "measured",
        0,
    )
    assert result["run_file"] == "run.jsonl"
    assert "device memory triad" in process.stdout
    assert "FLOP/byte" in process.stdout  # and drawn
    assert "run file: run.jsonl" in process.stdout
    with closing(sqlite3.connect(lab.folder / "state" / "gpulab" / NAME)) as store, store:
        ((device, measured),) = store.execute("SELECT owner, value FROM kept")
    store.close()
    key = json.loads(device)
    assert (key["device"], key["threads"]) == (result["device"]["name"], 1)
    assert key["torch"] == result["environment"]["torch"]
    assert json.loads(measured)["ceilings"]
    assert "<svg" in (lab.folder / "out.svg").read_text()


@pytest.mark.slow
def test_a_real_calibration_finds_every_ceiling_of_the_cpu(lab, monkeypatch, capsys):
    gpulab = CommandLine(lab, monkeypatch, capsys, WORKERS.command)
    process = gpulab("--calibrate", "--device", "cpu", "--telemetry", "off", "--json", "out.json")
    assert process.code == 0, process.stderr
    ceilings = {
        (ceiling["roof"], ceiling["kind"]): ceiling for ceiling in process.result["ceilings"]
    }
    # A cache's is one only where it was clearly faster than memory.
    assert set(ceilings) >= {("device memory", "triad"), ("matrix", "fp64"), ("matrix", "int8")}
    for ceiling in ceilings.values():
        if ceiling["source"] == "measured":
            assert ceiling["samples"] >= 5
            assert min(ceiling["best"], ceiling["median"]) > 0
            assert (ceiling["best"] >= ceiling["median"]) == (ceiling["unit"] != "s")
            assert ceiling["method"]["code"]
    # So briefly a busy machine may leave some unsteady; nothing else is wrong.
    assert {finding["code"] for finding in process.result["findings"]} <= {"ceilings_not_used"}
    assert ("matrix", "fp16") not in ceilings  # emulated on a CPU
    assert ceilings["launch", "enqueue"]["unit"] == "s"
    assert ceilings["launch", "enqueue"]["best"] > 0
    assert "measuring roofs" in process.stderr  # how far it is


def test_a_run_is_drawn_for_slides(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    gpulab = CommandLine(lab, monkeypatch, capsys)
    process = gpulab("--run", "mine.py", "--telemetry", "off", "--plot", "out.png")
    assert process.code == 0, process.stderr
    assert "picture: out.png" in process.stderr
    width, height = struct.unpack(">II", (lab.folder / "out.png").read_bytes()[16:24])
    assert width > height > 500


def test_the_run_file_has_all_that_a_picture_takes(tmp_path):
    report = report_of("lesson-batched_matmul", tmp_path)
    times, roofline = figures_of(report)
    assert [mark.name for mark in roofline.marks] == ["loop", "bmm"]
    assert [bar.name for bar in times.bars] == ["loop", "bmm"]
    export([(partial(as_file, [report]), tmp_path / "out.pdf")], open_terminal(ascii_only=True))
    assert (tmp_path / "out.pdf").read_bytes().startswith(b"%PDF")


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(written.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'gpulab\[plot\]'"):
        written.check_output("plot", tmp_path / "out.png")
