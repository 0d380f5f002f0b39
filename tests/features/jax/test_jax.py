"""Traces of jax.profiler: their bill, and programs and scenarios that use JAX."""

import gzip
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from gpulab.features.jax import reading

pytest.importorskip("jax")
H200 = Path(__file__).with_name("h200.trace.json.gz")
"""Eight steps of a small network: an update, its loss read, then asleep for 2 ms. JAX 0.11."""
UPDATE = """
    import os
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import sys, time
    import jax, jax.numpy as jnp
    from jax.profiler import StepTraceAnnotation

    @jax.jit
    def update(weights, rows):
        loss = lambda weights: jnp.square(jnp.tanh(rows @ weights)).mean()
        return weights - jax.grad(loss)(weights)

    weights = rows = jnp.ones((256, 256))
"""
RECORDED = """
    update(weights, rows).block_until_ready()
    with jax.profiler.trace("profile"):
        for step in range(5):
            with StepTraceAnnotation("train", step_num=step):
                weights = update(weights, rows)
                weights.block_until_ready()
            time.sleep(0.002)
"""
MARKED = """
    end, step = time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < end or step < 400:
        with StepTraceAnnotation("train", step_num=step):
            weights = update(weights, rows)
            weights.block_until_ready()
        step += 1
    print("steps", step, sys.getprofile())
    sys.exit(3)
"""
OWN = """
    for step in range(300):
        if step % 50 == 20:
            jax.profiler.start_trace("profile")
        with StepTraceAnnotation("train", step_num=step):
            update(weights, rows).block_until_ready()
        if step % 50 == 30:
            jax.profiler.stop_trace()
    print("done", step)
    jax.profiler.stop_trace()
"""
OWN_TORCH = """
    import torch
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    cycle = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=cycle, on_trace_ready=tensorboard_trace_handler("logs")) as prof:
        for step in range(40):
            net(torch.ones(8, 64)).mean().backward()
            optimizer.step()
            prof.step()
    print("done", step)
"""


def bills(lab, *names):
    target = lab.folder / "why.json"
    finished = lab.call("--why", *names, "--json", target)
    assert finished.code == 0, finished.stderr
    return finished, json.loads(target.read_text())["bills"]


def events_of(path):
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def covered_us(spans):
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def seconds_by_cause(bill):
    causes = {}
    for row in bill["rows"]:
        causes[row["cause"]] = causes.get(row["cause"], 0.0) + row["seconds"]
    return causes


def test_a_gpu_is_busy_as_its_streams_are(lab):
    finished, (bill,) = bills(lab, H200)
    events = events_of(H200)
    kernels = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
    busy_us = covered_us([(e["ts"], e["ts"] + e["dur"]) for e in kernels])
    assert bill["busy_s"] == pytest.approx(busy_us * 1e-6, rel=1e-6)
    assert sum(row["seconds"] for row in bill["rows"]) == pytest.approx(bill["wall_s"])
    alone_us = sum(e["dur"] for e in kernels if e["name"] == "wrapped_tanh")  # beside no other
    rows = {(row["cause"], row["of"]): row["seconds"] for row in bill["rows"]}
    assert rows["device busy", "wrapped_tanh"] == pytest.approx(alone_us * 1e-6, rel=0.01)
    assert max(rows, key=rows.get) == ("device idle: in Python, or not recorded", "time sleep")
    for idle in (
        ("dispatching", "jit update"),
        ("launching", "cuGraphLaunch"),
        ("the host waits for the device", "np.asarray(jax.Array)"),
    ):
        assert rows[f"device idle: {idle[0]}", idle[1]] > 0
    (profiler,) = (e for e in events if e["name"].endswith(" start_trace"))
    assert bill["wall_s"] < 0.03 < (max(e["ts"] for e in kernels) - profiler["ts"]) * 1e-6
    assert "8 steps (StepTraceAnnotation train)" in finished.stdout


def test_steps_are_those_marked_and_else_calls_that_repeat(lab):
    _, (marked,) = bills(lab, H200)
    events = [e for e in events_of(H200) if e["name"] != "train"]
    path = lab.folder / "unmarked.json"
    path.write_text(json.dumps({"traceEvents": events}))
    _, (bill,) = bills(lab, path)
    starts = sorted(e["ts"] for e in events_of(H200) if e["name"] == "train")
    every_s = median(b - a for a, b in pairwise(starts)) * 1e-6
    assert marked["steps"] == bill["steps"] == 8
    assert marked["every_s"] == pytest.approx(every_s, rel=1e-6)
    assert bill["every_s"] == pytest.approx(every_s, rel=0.01)
    assert bill["step_mark"] == "repetitions of jit update"
    assert marked["busy_s"] == pytest.approx(bill["busy_s"])


@pytest.mark.parametrize(
    ("calls", "length"),
    [("aaaa", 1), ("abab" * 3, 2), ("aab" * 4 + "a", 3), ("aaab", 0), ("abc" * 2, 0), ("", 0)],
)
def test_only_what_repeats_without_exception_is_a_step(calls, length):
    events = [
        {"ph": "X", "pid": 1, "tid": 2, "ts": 10.0 * n, "dur": 5.0, "name": f"PjitFunction({name})"}
        for n, name in enumerate(calls)
    ]
    trace, _ = reading.read([*events, {**dict(ph="X", pid=1, tid=2, ts=0, dur=1), "name": "x"}])
    steps = len(calls) // length if length else 0
    assert len(trace.steps) == steps
    starts = [step.start for step in trace.steps]
    assert starts == pytest.approx([1e-5 * length * n for n in range(steps)])


def test_what_the_viewer_cut_is_said(monkeypatch):
    monkeypatch.setattr(reading, "_MOST_EVENTS", 500)
    trace, note = reading.read(events_of(H200))
    assert "first million events" in note
    assert trace.device


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"ph": "X"}, 7, None, "x", {"ph": "M", "name": "thread_name"}],
        [{"ph": "X", "pid": 1, "tid": 1, "ts": "1", "dur": 2, "name": "PjitFunction(f)"}],
    ],
)
def test_a_trace_without_events_says_so(lab, events):
    host = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}
    path = lab.folder / "t.json"
    path.write_text(json.dumps({"traceEvents": [host, *events]}))
    finished = lab.call("--why", path)
    assert finished.code == 2
    assert "no events in it" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_what_is_whole_of_a_trace_that_was_cut_off_is_read(lab):
    text = gzip.decompress(H200.read_bytes())
    path = lab.folder / "t.json"
    path.write_bytes(text[: len(text) // 2])
    finished, (bill,) = bills(lab, path)
    assert "cut off" in bill["note"]
    assert "cut off" in finished.stdout
    hostile = [{**e, "args": {"correlation_id": "9" * 40, "long_name": 1}} for e in events_of(H200)]
    path.write_text(json.dumps({"traceEvents": [*events_of(H200)[:20], *hostile]}))
    bills(lab, path)


@pytest.fixture(scope="module")
def recorded(module_lab):
    module_lab.write("recorded.py", UPDATE + RECORDED)
    subprocess.run([sys.executable, "recorded.py"], cwd=module_lab.folder, check=True)
    return module_lab.folder / "profile"


def test_on_a_cpu_the_device_is_xla_and_a_folder_is_read(recorded, module_lab):
    finished, (bill,) = bills(module_lab, recorded)
    (path,) = recorded.glob("plugins/profile/*/*.trace.json.gz")
    ran = [e for e in events_of(path) if "hlo_op" in e.get("args", {})]
    if ran:  # older versions of JAX do not name its operations
        busy_us = covered_us([(e["ts"], e["ts"] + e["dur"]) for e in ran])
        assert bill["busy_s"] == pytest.approx(busy_us * 1e-6, rel=0.01)
    assert 0 < bill["busy_s"] < bill["wall_s"]
    assert bill["steps"] == 5
    assert "XLA on the CPU was busy" in finished.stdout
    assert seconds_by_cause(bill)["device idle: in Python, or not recorded"] > 0.009  # asleep


def follow(lab, text, *arguments, flags=("--profile", "on")):
    lab.write("train.py", text)
    target = lab.folder / "r.json"
    options = ("--telemetry", "off", *flags, "--json", target)
    finished = lab.call("--run", *options, "--", sys.executable, "train.py", *arguments)
    finished.result = json.loads(target.read_text())
    return finished


def test_marked_steps_of_a_program_are_timed_and_recorded(lab):
    finished = follow(lab, UPDATE + MARKED, "2", flags=("--profile", "on", "--trace", "t.json"))
    assert finished.code == 3
    words = finished.stdout.split()
    assert finished.stdout == f"steps {words[1]} None\n"
    program = finished.result["runs"][0]["program"]
    assert program["mark"] == "StepTraceAnnotation"
    assert program["steps"] == int(words[1])
    operations = finished.variant("train.py")["goodput"]["operations"]
    assert any(row["on_device"] for row in operations)
    assert "device was busy" in finished.stderr
    _, (bill,) = bills(lab, lab.folder / "t.json")
    assert bill["busy_s"] > 0
    assert bill["steps"] >= 1


def test_a_program_may_record_itself(lab):
    finished = follow(lab, UPDATE + OWN)
    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=lab.folder, capture_output=True, text=True, check=False
    )
    assert (finished.code, finished.stdout) == (alone.returncode, alone.stdout) == (1, "done 299\n")
    assert alone.stderr.splitlines()[-1] == "RuntimeError: No profile started"
    begin = finished.stderr.index("Traceback")
    assert alone.stderr[alone.stderr.index("Traceback") :] in finished.stderr[begin:]
    folder = lab.folder / "profile"
    assert f"the program wrote 6 traces of its own: gpulab --why {folder}" in finished.stderr
    _, (bill,) = bills(lab, folder)
    assert bill["steps"] == 11


@pytest.mark.slow
def test_traces_that_torch_wrote_for_the_program_are_offered(lab):
    finished = follow(lab, OWN_TORCH)
    assert (finished.code, finished.stdout) == (0, "done 39\n")
    newest = max((lab.folder / "logs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert f"the program wrote 2 traces of its own: gpulab --why {newest}" in finished.stderr


def test_steps_that_nothing_marks_are_asked_for(lab):
    finished = follow(lab, UPDATE + "    update(weights, rows)")
    assert finished.code == 0
    assert "no steps: none came to its end" in finished.stderr
    assert "jax.profiler.StepTraceAnnotation" in finished.stderr


@pytest.mark.slow
def test_a_scenario_has_the_operations_of_xla_and_a_trace_of_jax(lab):
    flags = ("--smoke", "--device", "cpu", "--trace", "t.json", "--memory", "--json", "r.json")
    finished = lab.call("--run", "jax_jit", *flags)
    assert finished.code == 0, finished.stderr
    run = json.loads((lab.folder / "r.json").read_text())["runs"][0]
    operations = run["variants"][0]["goodput"]["operations"]
    assert any(row["on_device"] and "fusion" in row["name"] for row in operations)
    assert any(row["name"].startswith("jit ") for row in operations)
    found = [each["values"] for each in run["explanations"] if each["code"] == "jax_memory"]
    held = found[0]
    assert held["total"] > 0
    assert gzip.decompress(Path(held["file"]).read_bytes())
    path = min(lab.folder.glob("t-*.json"), key=lambda path: path.stat().st_size)
    _, (bill,) = bills(lab, path)
    assert bill["busy_s"] > 0
