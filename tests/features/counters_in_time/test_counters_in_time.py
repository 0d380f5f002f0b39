"""Counters in time: sampled in a process of their own after the measurement, shown, and said why
not. Steps run for real on the CPU; the samples are those of an H200, from a stand-in.
"""

import json
import sys
from itertools import accumulate
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.catalog.catalog import read_file
from gpulab.catalog.needs import has_gpu
from gpulab.core.counted_steps import StepsJob
from gpulab.core.events import StageStarted
from gpulab.features.counters_in_time.after import probe, sample_counters
from gpulab.features.counters_in_time.rows import spread
from gpulab.options import Options
from gpulab.proc.pipes import Bell
from gpulab.report.sentences import sentence
from gpulab.session.requests import request_for

NEEDED = "counters_need_package"
HERE = Path(__file__).parent
STANDIN = HERE / "replayed_sampler.py"
RECORDED = json.loads((HERE / "samples.json").read_text())
SCENARIO = '''
"""Copies: two variants of one step."""

import torch

from gpulab import Scenario, Work

scenario = Scenario(topic="tests", params={"size": 262144})


@scenario.variant
def clone(lab, size):
    """Clones."""
    data = torch.rand(size)
    return Work(lambda: data.clone(), bytes=2 * data.nbytes)


@scenario.variant
def copied(lab, size):
    """Copies."""
    data = torch.rand(size)
    return Work(lambda: data + 0, bytes=2 * data.nbytes)


@scenario.variant
def skipped(lab, size):
    """Is nowhere."""
    lab.skip("not here")
'''


@pytest.fixture
def counted(lab):
    """Run the scenario with --counters, by a Python of the counters: what was printed, and the
    JSON.
    """

    def run(python, *flags, **variables):
        lab.write("copies.py", SCENARIO)
        lab.env |= {"GPULAB_COUNTERS_PYTHON": str(python), **variables}
        command = ["--run", "copies.py", "--smoke", "--device", "cpu", "--counters", *flags]
        process = lab.call(*command, "--json", "out.json", "--output", "run.jsonl")
        assert process.code == 0, process.stdout + process.stderr
        (report,) = json.loads((lab.folder / "out.json").read_text())["runs"]
        return process.stdout, report, process.stderr.splitlines()

    return run


@pytest.fixture
def standin(tmp_path):
    """As an interpreter: a file that can be executed."""
    file = tmp_path / "python"
    file.write_text(f'#!/bin/sh\nexec {sys.executable} {STANDIN} "$@"\n')
    file.chmod(0o755)
    return file


def codes(report):
    return [finding["code"] for finding in report["counters_in_time"]["findings"]]


def range_of(name, metric):
    """The least and the most of a metric while a recording on the H200 was busy, a second or of
    1.
    """
    recorded = RECORDED[name]
    place = 2 + RECORDED["metrics"].index(metric)
    busy = [each for each in recorded["samples"] if each[0] >= 3e5 and each[1] <= recorded["end"]]
    if metric.startswith("dram"):
        rates = [each[place] / (each[1] - each[0]) * 1e9 for each in busy]
    else:
        rates = [each[place] / 100 for each in busy]
    return min(rates) * 0.99, max(rates) * 1.01


def test_counters_are_shown_for_each_variant_beside_what_they_were_held_against(
    counted, standin, lab
):
    printed, report, said = counted(standin, "--export", "page.html")
    stages = [line for line in said if "counters of" in line]
    named = {line.partition("sampling counters of ")[2].split()[0] for line in stages}
    assert named  # progress may pass over one of the two
    assert named <= {"clone", "copied"}
    first, second, skipped = (variant["counters_in_time"] for variant in report["variants"])
    assert skipped is None
    for sampled, name in ((first, "copy"), (second, "bf16_product")):
        rows = sampled["rows"]
        for row, metric in (
            ("dram_read", "dram__bytes_read.sum"),
            ("tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"),
        ):
            least, most = range_of(name, metric)
            assert all(least <= value <= most for value in rows[row])
        assert all(0 <= share <= 1.01 for share in rows["sm_active"])
        assert max(map(len, rows.values())) <= 200
        assert sampled["steps"] * sampled["step_s"] < 1.0
        moved = sampled["per_step"]["dram_read"] + sampled["per_step"]["dram_write"]
        assert sampled["over_declared"] == pytest.approx(moved / (2 * 4 * 262144))
    assert max(first["rows"]["tensor"]) < 0.1 < 0.9 < max(second["rows"]["tensor"])
    cost = first["cost"]
    assert cost["n"] == 8
    assert cost["low"] <= cost["value"] <= cost["high"]
    assert second["cost"] is None
    run = report["counters_in_time"]
    assert run["package"] == "13.4.0"
    assert run["ratios"]["dram_read"] == pytest.approx(1, abs=0.01)
    assert run["ratios"]["pcie_read"] == 1.25
    assert "l2" not in run["ratios"]
    assert run["idle"].keys() == {"pcie_read", "pcie_write"}
    # the FMA pipe is not in the recording
    assert codes(report) == ["counter_deviates", "counters_missing"]
    page = (lab.folder / "page.html").read_text()
    for words in ("counters in time", "DRAM read", "tensor pipe", "PCIe read?", " pairs"):
        assert words in printed
        assert words in page
    heads = ("DRAM read  ", "DRAM write  ", "PCIe read?", "PCIe write  ", "SM active")
    rows = [line for line in printed.splitlines() if line.startswith(heads)]
    assert len(rows) == 10, printed
    assert all(len(row) <= 80 and "…" not in row for row in rows)
    replayed = lab.call("--replay", "run.jsonl", "--print")
    assert "PCIe read?" in replayed.stdout
    assert "below 1 % throughout: tensor pipe" in replayed.stdout


@pytest.mark.slow
def test_a_step_that_is_much_shorter_has_an_axis_of_its_own(counted, standin, lab):
    counted(standin)
    events = [json.loads(line) for line in (lab.folder / "run.jsonl").read_text().splitlines()]
    long, short = (event["sampled"] for event in events if event.get("type") == "CountersSampled")
    axes = {}
    for sampled in (long, short):
        sampled["rows"]["pcie_write"] = [0.0] * 20
        sampled["rows"]["sm_active"] = [0.002] * 20
    for times in (2, 5):
        long |= {"step_s": 0.01, "shown_s": 0.01}
        short |= {"step_s": 0.01 / times, "shown_s": 0.01 / times}
        lab.write("changed.jsonl", "".join(json.dumps(event) + "\n" for event in events))
        printed = lab.call("--replay", "changed.jsonl", "--print").stdout.splitlines()
        named = [line for line in printed if line.startswith("below 1 % throughout: ")]
        assert len(named) == 2
        assert all("SM active at most 0.2 %" in line for line in named)
        assert all("PCIe write 0" in line for line in named)
        heads = [line for line in printed if line.endswith("full scale")]
        axes[times] = [head.partition("mean")[0].split() for head in heads]
    assert axes[2] == [["0", "10.0", "ms"]] * 2
    assert axes[5] == [["0", "10.0", "ms"], ["0", "2.00", "ms"]]


@pytest.fixture
def events(standin, tmp_path, monkeypatch):
    """What comes of the scenario's job by `sample_counters`, with a stand-in that goes wrong."""
    file = tmp_path / "copies.py"
    file.write_text(SCENARIO)
    job = request_for(read_file(file), Options(device="cpu", smoke=True)).job
    monkeypatch.setenv("GPULAB_COUNTERS_PYTHON", str(standin))
    bell = Bell()
    before = psutil.Process().children()  # of other tests

    def come(how="", *, cancelled=False):
        monkeypatch.setenv("REPLAYED", how)
        if cancelled:
            bell.ring()
        asked = StepsJob(job=job, variants=["clone", "copied"])
        return list(sample_counters(asked, 20e-6, bell.fd))

    yield come
    assert set(psutil.Process().children()) <= {*before}


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("dies", "counters_ended", "SIGSEGV"),
        ("denied", "counters_not_permitted", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("empty", "counters_missing", "no sample was completed"),
    ],
)
def test_a_sampler_that_fails_is_said_and_raises_nothing(how, code, words, events):
    *stages, ended = events(how)
    assert all(isinstance(stage, StageStarted) for stage in stages)
    said = {finding.code: sentence(finding) for finding in ended.sampling.findings}
    assert words in said[code]


def test_whoever_cancels_waits_for_nothing(events):
    assert [type(event) for event in events(cancelled=True)] == [StageStarted]


def test_a_run_on_the_cpu_says_that_counters_need_a_gpu(counted):
    printed, report, said = counted("/nowhere/python")
    assert said[0] == "counters need an NVIDIA GPU: no GPU: this run is on the CPU"
    assert codes(report) == ["counters_need_gpu"]
    assert "counters need an NVIDIA GPU: no GPU: this run is on the CPU" in printed


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of packages for the sampler, as GPULAB_COUNTERS_PYTHON names it."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("GPULAB_COUNTERS_PYTHON", str(folder))
    return folder


def why_not():
    words, reason = probe()
    return reason.code, words


def test_what_is_missing_is_said_with_the_line_that_helps(packages, monkeypatch, tmp_path):
    line = f"pip install -U --target {packages} cupti-python"
    assert why_not() == (NEEDED, f"counters need a Python with cupti-python 13.3 or newer: {line}")
    older = packages / "cupti"
    older.mkdir()
    (older / "__init__.py").touch()
    assert why_not()[0] == NEEDED
    monkeypatch.delenv("GPULAB_COUNTERS_PYTHON")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code, said = why_not()
    folder = tmp_path / "gpulab" / "counters"
    assert code == NEEDED
    assert f"python3 -m venv {folder} && {folder}/bin/pip install -U cupti-python" in said


@pytest.mark.skipif(has_gpu(), reason="there is one")
def test_without_a_driver_there_is_no_gpu(packages):
    package = packages / "cupti"
    package.mkdir()
    for name in ("__init__.py", "pm_sampling.py"):
        (package / name).touch()
    assert why_not()[0] == "counters_need_gpu"


def test_a_python_that_is_no_sampler_is_said_to_have_ended(monkeypatch):
    monkeypatch.setenv("GPULAB_COUNTERS_PYTHON", "/bin/false")
    code, said = why_not()
    assert (code, "exit code 1" in said) == ("counters_ended", True)


amounts = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 10**9)), min_size=1, max_size=60)


@given(amounts, st.integers(1, 300), st.integers(-(10**7), 10**7))
def test_what_is_spread_over_bins_keeps_its_sum(amounts, bins, begin):
    ends = [begin, *accumulate((length for length, _ in amounts), initial=begin)][1:]
    values = [amount for _, amount in amounts]
    samples = {"start": ends[:-1], "end": ends[1:]}
    sums = spread(samples, values, begin, ends[-1], bins)
    assert len(sums) == bins
    assert all(each >= 0 for each in sums)
    assert sum(sums) == pytest.approx(sum(values), rel=1e-6)
    middle = (begin + ends[-1]) / 2
    halves = [
        spread(samples, values, *part, bins) for part in ((begin, middle), (middle, ends[-1]))
    ]
    assert sum(map(sum, halves)) == pytest.approx(sum(values), rel=1e-6)
