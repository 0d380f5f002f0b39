"""The engine from outside: ladders, teardown, variants alone, dear builds, compiled steps, figures of one's own."""

import pytest

from gpulab.model.events import Checked, StageStarted
from gpulab.run.record import read

HEAD = """
import contextlib, time
import torch
from gpulab import Scenario, Work
scenario = Scenario("engine"{keywords})
DATA = torch.rand(20_000)
EVENTS = open({log!r}, "a", buffering=1)

def work(times, **more):
    data = DATA.clone()
    def step():
        for _ in range(times):
            out = data * 2
        return out
    return Work(step, inputs=data, **more)

def say(*what):
    print(*what, file=EVENTS)
"""


def scenario(lab, body, keywords=""):
    log = lab.folder / "events.txt"
    return lab.write("engine.py", HEAD.format(keywords=keywords, log=str(log)) + body), log


def variants(*lines):
    return "".join(f"\n@scenario.variant\ndef {line}\n" for line in lines)


def test_a_ladder_compares_with_the_baseline_and_the_rung_below(lab):
    path, _ = scenario(
        lab,
        variants("a(lab): return work(9)", "b(lab): return work(3)", "c(lab): return work(1)"),
        ", ladder=True",
    )
    done = lab.run(path, time_s="1")
    found = {(one["variant"], one["against"]): one for one in done.run["comparisons"]}
    assert set(found) == {("b", "a"), ("c", "a"), ("c", "b")}
    if done.code == 0:
        assert {one["verdict"] for one in found.values()} == {"faster"}
        assert 1.5 < found["c", "b"]["speedup"] < 4.5
    assert "vs b" in done.stderr


def test_every_build_is_torn_down_and_one_that_fails_too(lab):
    body = """
@scenario.variant
def a(lab):
    say("up")
    yield work(1)
    say("down")

@scenario.variant
def b(lab):
    say("up")
    made = work(1)
    yield Work(lambda: made.step() * 0, inputs=made.inputs)
    say("down")
"""
    path, log = scenario(lab, body)
    done = lab.run(path)
    words = log.read_text().split()
    assert done.variant("b")["status"] == "wrong"
    assert words.count("up") == words.count("down") > 10
    depth = 0
    for word in words:
        depth += 1 if word == "up" else -1
        assert 0 <= depth <= 3  # the baseline, the control, and one being checked


def test_variants_that_need_the_device_to_themselves_never_share_it(lab):
    body = """
live = 0

@contextlib.contextmanager
def alone():
    global live
    live += 1
    say("live", live)
    yield
    live -= 1

@scenario.variant
def a(lab):
    with alone():
        yield work(3)

@scenario.variant
def b(lab):
    with alone():
        yield work(1)
"""
    path, log = scenario(lab, body, ", alone=True")
    done = lab.run(path, time_s="1")
    assert done.code in (0, 7)
    assert set(log.read_text().split("live")[1:]) == {" 1\n"}
    assert done.run["method"]["epochs"] >= 8
    assert done.verdict("b") in ("faster", "invalid")
    checks = [event for event in read(done.run_file).events if isinstance(event, Checked)]
    assert [one.when for one in checks if one.variant == "b"] == ["before", "after"]


def test_dear_builds_are_few_and_the_result_says_so(lab):
    body = """
@scenario.variant
def a(lab):
    time.sleep(1.1)
    return work(9)

@scenario.variant
def b(lab):
    return work(1)
"""
    path, _ = scenario(lab, body)
    done = lab.run(path, time_s="5")
    method = done.run["method"]
    assert method["epochs"] == 2
    assert (method["floor"], method["unit"]) == (0.03, "pairs")
    assert any("builds take over a second" in text for text in done.run["warnings"])
    assert done.verdict("b") == "faster" or done.code == 7


def test_a_figure_of_one_s_own_is_kept_beside_the_result(lab):
    path, _ = scenario(lab, variants("a(lab): return work(1)", "b(lab): lab.report('x\\x1b[31m', 3); return work(1)"))
    done = lab.run(path)
    assert done.run["reports"] == [{"variant": "b", "name": "x\x1b[31m", "value": 3.0}]
    assert "b: x 3" in done.stderr
    assert "\x1b" not in done.stderr


def test_different_amounts_are_compared_per_item(lab):
    body = variants("one(lab): return work(1, items=1)", "many(lab): return work(8, items=8)")
    path, _ = scenario(lab, body, ", per='item'")
    done = lab.run(path, time_s="1")
    comparison = done.run["comparisons"][0]
    assert 0.7 < comparison["speedup"] < 1.5
    times = [done.variant(name)["time_s"]["median"] for name in ("one", "many")]
    assert 5 < times[1] / times[0] < 11


def test_a_training_step_whose_optimizer_makes_its_state_at_first_is_measured(lab):
    body = """
def train(set_to_none):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.rand(8, 16)
    def step():
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return Work(step, inputs=data, state=(model, optimizer), items=8)

@scenario.variant
def a(lab): return train(True)

@scenario.variant
def b(lab): return train(False)
"""
    path, _ = scenario(lab, body)
    done = lab.run(path)
    assert [one["status"] for one in done.run["variants"]] == ["ok", "ok"]
    assert not any("second step" in text for text in done.run["warnings"])


def test_what_is_only_for_scale_is_timed_and_neither_checked_nor_compared(lab):
    body = """
@scenario.variant
def a(lab): return work(1)

@scenario.variant(against=None)
def scale(lab): return Work(lambda: DATA[:10] * 3, items=5)

@scenario.variant(unchecked="it is random")
def loose(lab): return Work(lambda: torch.rand(20_000))

@scenario.variant
def low(lab):
    data = DATA.bfloat16()
    return Work(lambda: data * 2, inputs=data)
"""
    path, _ = scenario(lab, body)
    done = lab.run(path)
    assert {one["status"] for one in done.run["variants"]} == {"ok"}
    assert done.variant("scale")["time_s"]["median"] > 0
    assert [one["variant"] for one in done.run["comparisons"]] == ["loose", "low"]
    assert "loose: not checked (it is random)" in done.run["warnings"]
    assert any("low: computes in lower precision" in text for text in done.run["warnings"])
    assert done.variant("loose")["unchecked"] == "it is random"


def test_the_stages_come_in_order(lab):
    path, _ = scenario(lab, variants("a(lab): return work(1)", "b(lab): return work(1)"))
    done = lab.run(path)
    stages = [(one.stage, one.variant) for one in read(done.run_file).events if isinstance(one, StageStarted)]
    each = ["build", "check", "calibrate", "warm-up"]
    assert stages == [
        ("load", None),
        *((stage, name) for name in "ab" for stage in each),
        ("measure", None),
        ("re-check", "a"),
        ("re-check", "b"),
    ]


@pytest.mark.slow
@pytest.mark.skipif("not __import__('shutil').which('g++')", reason="needs a C++ compiler")
def test_compiled_steps_are_measured_and_leave_nothing_behind(lab):
    body = """
def chain(x):
    return ((x + 1).relu() * 2 + 1).tanh()

@scenario.variant
def eager(lab):
    data = DATA.clone()
    return Work(lambda: chain(data), inputs=data)

@scenario.variant
def compiled(lab):
    data = DATA.clone()
    step = torch.compile(chain)
    return Work(lambda: step(data), inputs=data)
"""
    path, _ = scenario(lab, body, ", needs=('compiler',)")
    done = lab.run(path, time_s="3")
    assert done.variant("compiled")["status"] == "ok"
    assert done.variant("compiled")["first_step_s"] > 10 * done.variant("eager")["first_step_s"]
    assert not any("left" in text for text in done.run["warnings"])
    assert done.verdict("compiled") in ("faster", "slower", "inconclusive", "same", "invalid")
    assert lab.none_left(within=1)


def test_the_worker_s_environment_is_pinned_and_a_scenario_may_change_it(lab):
    body = """
import os

@scenario.variant
def a(lab):
    lab.report("threads", torch.get_num_threads())
    lab.report("mmap threshold", int(os.environ["MALLOC_MMAP_THRESHOLD_"]))
    lab.report("top pad", int(os.environ.get("MALLOC_TOP_PAD_", -1)))
    lab.report("mine", int(os.environ["MINE"]))
    lab.report("own process group", os.getpgid(0) == os.getpid())
    lab.report("last to be spared", int(open("/proc/self/oom_score_adj").read()))
    return work(1)
"""
    path, _ = scenario(lab, body, ", env={'MINE': '7', 'MALLOC_TOP_PAD_': None}")
    for threads in ("1", "2"):
        done = lab.run(path, "--threads", threads)
        assert done.run["device"]["threads"] == int(threads)
        found = {one["name"]: one["value"] for one in done.run["reports"]}
        assert found == {
            "threads": int(threads),
            "mmap threshold": 32 << 20,
            "top pad": -1,
            "mine": 7,
            "own process group": 1,
            "last to be spared": 1000,
        }
        assert (done.variant("a")["contention"] is None) is (threads == "2")
