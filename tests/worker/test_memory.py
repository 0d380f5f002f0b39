"""A scenario that grows meets the end of memory, and a variant that the device cannot do steps aside."""

import resource

GROWS = """
import torch
from gpulab import MiB, Scenario, Work
scenario = Scenario("memory", params={"scale": 1}, per="item", grows=True)

@scenario.variant
def small(lab, scale):
    return _work(1 * scale)

@scenario.variant
def middle(lab, scale):
    return _work(64 * scale)

@scenario.variant
def large(lab, scale):
    return _work(4096 * scale)

@scenario.variant
def larger(lab, scale):
    raise AssertionError("never built")

def _work(mib):
    data = torch.zeros(mib * MiB // 4)
    return Work(lambda: data[:1024] + 1, inputs=data[:1024], items=mib)
"""
LIMIT = 2 << 30


def limited():
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


def test_the_sizes_that_fit_are_measured_and_the_first_that_does_not_is_reported(lab):
    path = lab.write("grows.py", GROWS)
    lab.start_options = {"preexec_fn": limited}
    done = lab.run(path)
    assert done.code == 0
    assert [one["status"] for one in done.run["variants"]] == ["ok", "ok", "out of memory", "skipped"]
    assert "memory" in done.variant("large")["reason"]
    assert "large did not fit" in done.variant("larger")["reason"]
    assert done.verdict("middle") is not None
    assert done.verdict("large") is None
    assert done.run["sweet_spot"] == "middle"
    assert "sweet spot: middle" in done.stderr
    assert done.state.failures == ()


def test_the_lesson_meets_the_end_of_memory(lab):
    lab.start_options = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_DATA, (3 << 28, 3 << 28))}
    done = lab.run("batch_size", "--smoke", "--set", "width=4", "--set", "hidden=40000")
    assert done.code == 0
    statuses = [one["status"] for one in done.run["variants"]]
    assert statuses[:2] == ["ok"] * 2
    assert "out of memory" in statuses
    assert set(statuses[statuses.index("out of memory") + 1 :]) <= {"skipped"}


def test_without_a_limit_what_is_larger_than_the_machine_is_reported_too(lab):
    done = lab.run(lab.write("grows.py", GROWS), "--set", "scale=20")
    assert done.code == 0
    assert done.variant("large")["status"] == "out of memory"


def test_sizes_that_fit_one_by_one_are_measured_one_by_one(lab):
    text = GROWS.replace("4096 * scale", "900 * scale")
    path = lab.write("grows.py", text.replace('raise AssertionError("never built")', "return _work(901)"))
    lab.start_options = {"preexec_fn": limited}
    done = lab.run(path)
    assert done.code in (0, 7)  # alone, a machine that drifts may take the control with it
    assert [one["status"] for one in done.run["variants"]] == ["ok"] * 4
    assert done.run["method"]["epochs"] >= 8
    assert any("each ran alone" in text for text in done.run["warnings"])
    assert done.verdict("larger") is not None


def test_a_baseline_that_does_not_fit_is_a_failure(lab):
    lab.start_options = {"preexec_fn": limited}
    done = lab.run(lab.write("grows.py", GROWS), "--set", "scale=4096")
    assert done.code == 3
    assert done.state.failures[0].kind == "out of memory"


def test_a_scenario_that_does_not_say_so_fails_for_want_of_memory(lab):
    lab.start_options = {"preexec_fn": limited}
    done = lab.run(lab.write("grows.py", GROWS.replace(", grows=True", "").replace("never built", "built")))
    assert done.code == 3
    assert done.variant("large")["status"] == "failed"


def test_a_variant_may_step_aside(lab):
    path = lab.write(
        "skip.py",
        GROWS.replace(", grows=True", "").replace("return _work(4096 * scale)", "lab.skip('needs [more] bits')"),
    )
    done = lab.run(path)
    assert done.variant("large")["status"] == "skipped"
    assert "large skipped: needs [more] bits" in done.stderr
    assert done.verdict("middle") is not None


def test_a_baseline_that_steps_aside_leaves_nothing_to_compare(lab):
    path = lab.write("skip.py", GROWS.replace("return _work(1 * scale)", "lab.skip('no')"))
    done = lab.run(path)
    assert done.run["comparisons"] == []
    assert done.variant("small")["status"] == "skipped"
    assert done.code == 3
    assert "nothing was measured" in done.run["reason"]
