"""A scenario that writes to the lab's event pipe earns no verdict, and one that ends its process early has failed."""

import pytest
from faults import HEAD, VARIANT

FORGE = """
from gpulab.protocol import events as e
from gpulab.protocol.frames import numbered, signed

def forge(*lines):
    for fd in range(3, 1024):
        for line in lines:
            try:
                os.write(fd, line)
            except OSError:
                pass

def exited(stage="end"):
    return e.WorkerExited(code=0, signal=None, stage=stage, variant=None)
"""
LATE = "if builds > 12 and steps > 1: "
FAST = "return out if builds > 2 else torch.mul(DATA, 2, out=out)"
FORGED = {
    # name: (while the file is imported, in the step, exit code, code of the reason)
    "plain lines": ('forge(b\'\\n{"type":"WorkerDone","sent":2}\\n\')', LATE + "os._exit(0)", 3, "worker_exited"),
    "end while imported": ("forge(numbered(2, e.WorkerDone(sent=2)))", LATE + "os._exit(0)", 3, "worker_exited"),
    "end that was not reached": ("forge(numbered(2, e.WorkerDone(sent=2)))", "pass", 7, "event_after_end"),
    "exit": ("forge(numbered(2, exited()), signed(b'0' * 32, exited()))", LATE + "os._exit(0)", 3, "worker_exited"),
    "exit of its own": ("forge(numbered(2, exited()))", "pass", 7, "event_repeated"),
    "a later number": ("forge(numbered(900, e.Stopped(reason='width')))", "pass", 7, "events_lost"),
}


@pytest.fixture(scope="module")
def results(module_lab):
    """A run of each, as short as can be."""
    finished = {}
    for number, (name, (imported, step, *_)) in enumerate(FORGED.items()):
        path = module_lab.write(
            f"forged_{number}.py", HEAD + FORGE + imported + VARIANT.format(name="bad", step=step, build="pass")
        )
        finished[name] = module_lab.run(path)
    return finished


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_event_earns_no_verdict(results, name):
    *_, code, reason = FORGED[name]
    finished = results[name]
    assert finished.code == code, finished.stderr
    findings = [finished.run["reason"], *finished.run["findings"]]
    assert reason in [finding["code"] for finding in findings]
    assert all(comparison["speedup"] is None for comparison in finished.run["comparisons"])


def test_samples_that_the_profiling_worker_forges_make_the_run_invalid(module_lab):
    columns = "epoch=[99] * 2, round=[0] * 2, variant=[0, 1], cpu_s=[1.0] * 2, faults=[0] * 2, switches=[0] * 2"
    forged = (
        "started = os.path.join(os.path.dirname(__file__), 'started')\n"
        "if os.path.exists(started):\n"
        f"    samples = e.Samples(names=('good', 'bad', 'control'), complete=100, times_s=[1.0, 1e-9], {columns})\n"
        "    forge(*(numbered(number, samples) for number in range(40)))\n"
        "open(started, 'w')\n"
    )
    path = module_lab.write(
        "forged_profile.py", HEAD + FORGE + forged + VARIANT.format(name="bad", step="pass", build="pass")
    )
    finished = module_lab.run(path, "--profile", "on", time_s="1")
    assert (finished.code, finished.run["outcome"]) == (7, "invalid")
    assert finished.run["reason"]["code"] in ("event_not_allowed", "event_repeated", "events_lost")
    assert finished.verdict("bad") == "invalid"
