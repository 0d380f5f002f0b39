"""A scenario that writes to the lab's event pipe earns no verdict, and one that ends its process
early has failed.
"""

import pytest
from faults import HEAD, VARIANT
from worker_without_torch import events_of_session

from gpulab.core.statuses import Verdict
from gpulab.report.build import build_report, fold_all

FORGE = """
import os, time
from gpulab.core import events as e
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.core.payloads import Choice, Tuning
from gpulab.features.roofline.events import Ceiling
from gpulab.core.wire import numbered, signed
from gpulab.core.wire import encode

def forge(*lines):
    for fd in range(3, 1024):
        for line in lines:
            try:
                os.write(fd, line)
            except OSError:
                pass

def exited(stage="end"):
    return e.WorkerExited(code=0, signal=None, stage=stage, variant=None)

def samples(number):
    columns = dict(epoch=[number] * 2, round=[0] * 2, ended=[time.monotonic()] * 2, steps=[1] * 2, variant=[0, 1], cpu_s=[1.0] * 2, faults=[0] * 2, switches=[0] * 2)
    return e.Samples(names=("good", "bad", "control"), complete=number + 1, times_s=[1e-4, 1e-9], **columns)
"""
SERVE = """
from gpulab.core.findings import Finding

def serve(channel, job, buffer, position, forks):
    for number in range(3):
        channel.emit(e.FindingMade(finding=Finding(code="x")))
    {forgery}
    channel.emit(e.Stopped(reason="time"))
    position.move("end")
    channel.emit(e.WorkerDone(sent=channel.sent))
    channel.flush()
"""
RESULT = """
    from gpulab.core.statuses import CheckTime
    checks = [e.Checked(variant=n, when="before", ok=True, error=0.0, tolerance=1.0) for n in ("good", "bad")]
    columns = dict(round=[0] * 3, ended=[time.monotonic()] * 3, steps=[1] * 3, variant=[0, 1, 2], cpu_s=[1.0] * 3, faults=[0] * 3, switches=[0] * 3)
    names = ("good", "bad", "control")
    batches = [
        e.Samples(names=names, complete=n + 1, epoch=[n] * 3, times_s=[1e-4, 1e-5, 1e-4], **columns) for n in range(30)
    ]
    ceiling = Ceiling(roof="matrix", kind="fp32", unit="FLOP/s", best=1.0, median=1.0)
    ceilings = CeilingsMeasured(ceilings=(ceiling,), at="2026-01-01", complete=True)
    forge(*(numbered(3 + n, event) for n, event in enumerate([*checks, *batches, ceilings])))
"""
FORGED = {
    # name: (the forgery, exit code, code of the reason)
    "what is no frame": (
        "forge(encode(e.WorkerDone(sent=2)), encode(exited()), encode(samples(0)))",
        0,
        None,
    ),
    "samples": ("forge(*(numbered(3 + n, samples(n)) for n in range(20)))", 7, "event_repeated"),
    "a result": (f"{RESULT}", 7, "event_repeated"),
    "a result, and no more": (f"{RESULT}    os._exit(0)", 3, "worker_exited"),
    "a result, and no supervisor": (
        f"{RESULT}    os.kill(os.getppid(), 9); time.sleep(9)",
        3,
        "supervisor_gone",
    ),
    "a choice of nothing": (
        "forge(numbered(3, e.Tuned(variant='good', choice=Choice(key='k', tuning=Tuning(tried=[])))))",
        0,
        None,
    ),
    "an end": ("forge(numbered(3, e.WorkerDone(sent=3)))", 7, "event_after_end"),
    "an end, and no more": (
        "forge(numbered(3, e.WorkerDone(sent=3))); os._exit(0)",
        3,
        "worker_exited",
    ),
    "an end after the end": ("channel.emit(e.WorkerDone(sent=3))", 7, "event_after_end"),
    "an exit": ("forge(numbered(3, exited())); os._exit(0)", 3, "worker_exited"),
    "an exit, and no more": (
        "forge(numbered(3, exited()), signed(b'0' * 32, exited()))",
        7,
        "event_not_allowed",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_event_earns_no_verdict(tmp_path, name):
    forgery, code, reason = FORGED[name]
    path = tmp_path / "forged.py"
    path.write_text(FORGE + SERVE.format(forgery=forgery))
    report = build_report(fold_all(events_of_session(path, ["good", "bad"])))
    assert report.exit_code == code
    assert (report.reason and report.reason.code) == reason
    assert bool(report.comparisons) == (name == "samples" or name.startswith("a result"))
    assert all(comparison.verdict == Verdict.INVALID for comparison in report.comparisons)
    assert all(comparison.speedup is None for comparison in report.comparisons)


@pytest.mark.slow
def test_a_run_whose_scenario_forges_its_end_and_skips_its_work_has_failed(lab):
    """Computes nothing in timed blocks, and calls os._exit before it would be checked again."""
    forged = "forge(encode(e.WorkerDone(sent=2)), numbered(2, e.WorkerDone(sent=2)))\n"
    step = "if builds > 1 and steps > 20: os._exit(0)\n        if builds > 1: return out"
    path = lab.write(
        "forged.py", HEAD + FORGE + forged + VARIANT.format(name="bad", step=step, build="pass")
    )
    finished = lab.run(path, time_s="2", fresh=True)
    assert finished.code == 3
    assert finished.run["reason"]["code"] == "worker_exited"
    assert not any(comparison["speedup"] for comparison in finished.run["comparisons"])
    assert "faster" not in finished.stderr
    assert "wrote to the lab's event pipe" in finished.stderr


@pytest.mark.slow
def test_samples_that_the_profiling_worker_forges_make_the_run_invalid(lab):
    forged = (
        "started = os.path.join(os.path.dirname(__file__), 'started')\n"
        "if os.path.exists(started):\n"
        "    forge(*(numbered(number, samples(99)) for number in range(40)))\n"
        "open(started, 'w')\n"
    )
    path = lab.write(
        "forged.py", HEAD + FORGE + forged + VARIANT.format(name="bad", step="pass", build="pass")
    )
    finished = lab.run(path, "--profile", "on", time_s="1", fresh=True)
    assert (finished.code, finished.run["outcome"]) == (7, "invalid")
    assert finished.run["reason"]["code"] in ("event_not_allowed", "event_repeated")
    assert finished.verdict("bad") == "invalid"
