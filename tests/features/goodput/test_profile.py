"""Goodput in a real run: by arithmetic, with marks and without, and beside steps that end under the
profiler.
"""

import json

import pytest
from conftest import wait_for
from finished_runs import events_of

from gpulab.core.statuses import CeilingChoice
from gpulab.features.goodput.events import Profiled
from gpulab.headless.gate import RunGate
from gpulab.headless.run_plan import plan_runs
from gpulab.options import Options
from gpulab.traces.trace import read

HALVES = '''
"""Halves: steps that wait and compute, and time themselves; others that a profiler meets."""
import time
import torch
from gpulab import Scenario, Work
scenario = Scenario("profile", params={"wait_ms": 10})

@scenario.variant
def waits(lab, wait_ms):
    """Waits for data, then computes as long; the wait lies in a phase within a phase."""
    return _halves(lab, wait_ms * 1e-3)

@scenario.variant
def hardly(lab, wait_ms):
    """Waits a tenth of that."""
    return _halves(lab, wait_ms * 1e-4)

@scenario.variant(against=None)
def raises(lab):
    return _when_profiled(_raise, RuntimeError("not while I am profiled"))

@scenario.variant(against=None)
def quits(lab):
    return _when_profiled(_raise, SystemExit(3))

@scenario.variant(against=None)
def works(lab):
    return _when_profiled(abs, 1)

def _raise(error):
    raise error

def _when_profiled(act, argument):
    a = torch.rand(1000)
    def step():
        if torch.autograd._profiler_enabled():
            act(argument)
        return a + 1
    return Work(step, inputs=a)

def _halves(lab, wait_s):
    a = torch.rand(256, 256)  # few operations to record
    out = torch.empty_like(a)
    def step():
        with lab.phase("data"):
            with lab.phase("data"):
                time.sleep(wait_s)
        with lab.useful():
            end = time.perf_counter() + 0.01
            while time.perf_counter() < end:
                torch.mm(a, a, out=out)
            # what allocates under a mark is useful too
            buffers = [torch.zeros(64) for _ in range(20)]
        return out
    return Work(step, inputs=a)
'''


@pytest.fixture(scope="module")
def profiled(module_lab):
    (module_lab.folder / "t-hardly.json").mkdir()  # where a trace cannot be written
    path = module_lab.write("halves.py", HALVES)
    return module_lab.run(path, "--trace", "t.json", "--smoke")


@pytest.mark.parametrize(("name", "wait_s"), [("waits", 0.01), ("hardly", 0.001)])
def test_its_parts_hold_what_the_step_does_at_least(profiled, name, wait_s):
    """Other work may lengthen a sleep and a computation, and never shorten one."""
    # the second one has its operations too
    *_, recorded = (event for event in events_of(profiled, Profiled) if event.variant == name)
    seconds, steps = recorded.partition.seconds, recorded.steps
    assert recorded.partition.marked
    assert seconds["data wait"] > 0.99 * wait_s * steps
    assert seconds["useful"] + seconds["preempted"] > 0.99 * 0.01 * steps
    assert sum(seconds.values()) == pytest.approx(recorded.partition.window_s, rel=1e-3)
    goodput = profiled.variant(name)["goodput"]
    assert sum(goodput["partition"].values()) == pytest.approx(1.0, abs=1e-3)
    assert sum(goodput["phases"].values()) == pytest.approx(1.0, abs=1e-3)


def test_a_wait_is_a_part_of_its_own_and_drawn(profiled):
    waits = profiled.variant("waits")["goodput"]
    assert "data" in waits["waiting"]  # on a busy machine what computes may be off the CPU too
    assert "data wait" in profiled.stderr
    assert "uu" in profiled.stderr  # the bar


def test_what_cannot_be_profiled_keeps_its_measurement(profiled):
    failed = {
        finding["variant"]: finding for finding in profiled.findings("profiling_variant_failed")
    }
    assert {name: finding["values"]["message"] for name, finding in failed.items()} == {
        "raises": "not while I am profiled",
        "quits": "3",
    }
    for name in ("raises", "quits"):
        assert profiled.variant(name)["status"] == "ok"
        assert profiled.variant(name)["time_s"]["value"] > 0
        assert profiled.variant(name)["goodput"] is None
    assert sum(profiled.variant("works")["goodput"]["partition"].values()) == pytest.approx(1)
    assert profiled.run["failures"] == []


def test_each_variant_that_was_recorded_has_its_trace(profiled):
    folder = profiled.run_file.parent
    files = {path.name for path in folder.glob("t*.json") if path.is_file()}
    assert files == {"t-waits.json", "t-works.json"}
    document = json.loads((folder / "t-waits.json").read_text())
    assert read(document).main
    assert "gpulab:window" in {event.get("name") for event in document["traceEvents"]}
    assert profiled.variant("waits")["goodput"]["trace"] == str(folder / "t-waits.json")


def test_a_trace_that_cannot_be_written_costs_no_partition(profiled):
    (finding,) = profiled.findings("trace_not_written")
    assert finding["values"]["file"] == str(profiled.run_file.parent / "t-hardly.json")
    assert sum(profiled.variant("hardly")["goodput"]["partition"].values()) == pytest.approx(1)
    assert profiled.variant("hardly")["goodput"]["trace"] is None


ENDS = """
import os, tempfile, time
import torch
from gpulab import Scenario, Work
scenario = Scenario("ends")

def work(end=lambda: None):
    data = torch.rand(1000)
    def step():
        if torch.autograd._profiler_enabled():
            end()
        return data * 2
    return Work(step, inputs=data)
"""
END = """
@scenario.variant
def {name}(lab):
    return work({end})
"""
HANGS = "lambda: open('hangs', 'w').close() or time.sleep(600)"


@pytest.mark.slow
def test_what_ends_a_profiling_process_takes_no_other_variant_with_it_and_fails_no_run(lab):
    ends = {"first": "", "dies": "lambda: os._exit(7)", "crashes": "os.abort", "last": ""}
    path = lab.write(
        "ends.py", ENDS + "".join(END.format(name=name, end=end) for name, end in ends.items())
    )
    finished = lab.run(path, "--profile", "all", time_s="1")
    ended = {
        finding["variant"]: finding["values"]["cause"]
        for finding in finished.findings("profiling_ended")
    }
    assert ended == {"dies": "worker_exited", "crashes": "crashed"}
    assert finished.code == 0
    assert finished.run["failures"] == []
    profiled = [variant["name"] for variant in finished.run["variants"] if variant["goodput"]]
    assert profiled == ["first", "last"]


@pytest.mark.slow
def test_a_profile_that_hangs_fails_no_run_that_was_measured(lab):
    path = lab.write(
        "ends.py", ENDS + END.format(name="first", end="") + END.format(name="hangs", end=HANGS)
    )
    finished = lab.run(path, "--profile", "on", "--timeout", "12", time_s="1")
    (ended,) = finished.findings("profiling_ended")
    assert ended["values"]["cause"] == "timeout"
    assert finished.code == 0
    assert finished.variant("hangs")["status"] == "ok"


@pytest.mark.slow
def test_no_folder_is_left_where_the_session_is_killed_as_well(lab, tmp_path):
    path = lab.write("ends.py", ENDS + END.format(name="hangs", end=HANGS))
    lab.env["TMPDIR"] = str(tmp_path)
    process = lab.start("--run", path, "--device", "cpu", "--time", "1", "--telemetry", "off")
    wait_for((lab.folder / "hangs").exists)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("gpulab-held-")]
    process.kill()
    process.communicate()
    assert lab.none_left()
    assert not [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("gpulab-held-")]


def test_of_several_runs_each_has_its_trace_and_a_smoke_run_measures_no_ceilings(lab):
    path = lab.write("halves.py", HALVES)
    options = Options(
        device="cpu",
        smoke=True,
        sweep=["wait_ms=1,2"],
        trace=lab.folder / "t.json",
        output=lab.folder,
    )
    requests = [planned.request for planned in plan_runs([str(path)], options, RunGate(options))]
    names = [str(lab.folder / f"t-halves-wait_ms-{value}.json") for value in (1, 2)]
    assert [request.profile.trace for request in requests] == names
    assert [request.job.ceilings for request in requests] == [CeilingChoice.NONE] * 2
