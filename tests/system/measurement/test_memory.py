"""A scenario of increasing memory meets the end of it, and a variant that the device cannot do
steps aside.
"""

import pytest
from finished_runs import measured_speedup

INCREASES = '''
"""Sizes: each larger than the one above."""
import resource
import torch
from gpulab import MiB, Scenario, Work
scenario = Scenario("memory", per="item", increasing_memory=True)
LIMIT = resource.getrlimit(resource.RLIMIT_DATA)[0]

@scenario.variant
def small(lab):
    lab.report("limit", LIMIT)
    lab.report("memory", lab.memory_bytes)
    return _work(MiB)

@scenario.variant
def aside(lab):
    lab.skip("needs [more] bits")

@scenario.variant
def middle(lab):
    return _work(int(0.3 * LIMIT))

@scenario.variant
def large(lab):
    return _work(int(0.8 * LIMIT))

@scenario.variant
def too_large(lab):
    return _work(LIMIT)

@scenario.variant
def larger(lab):
    raise AssertionError("never built")

def _work(size):
    data = torch.empty(size // 4)
    rows = data[:1024].fill_(1)
    return Work(lambda: rows + 1, inputs=rows, items=size / MiB)
'''

REMEMBERS = '''
"""The larger one gives what its build computed."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("memory", increasing_memory=True)

@scenario.variant
def small(lab):
    data = torch.randn(1 << 10)
    return Work(lambda: data * 2, inputs=data)

@scenario.variant
def larger(lab):
    data = torch.randn(1 << 10).repeat(2)[: 1 << 10]
    doubled = data * 2
    return Work(doubled.clone, inputs=data)
'''


@pytest.fixture(scope="module")
def sizes(module_lab):
    return module_lab.run(module_lab.write("sizes.py", INCREASES), time_s="0.2")


def test_the_sizes_that_fit_are_measured_and_the_first_that_does_not_is_reported(sizes):
    statuses = [variant["status"] for variant in sizes.run["variants"]]
    assert statuses == ["ok", "skipped", "ok", "ok", "out of memory", "skipped"]
    figures = {figure["name"]: figure["value"] for figure in sizes.run["figures"]}
    # the free memory: Linux itself would grant all of it and more
    assert 0 < figures["limit"] <= figures["memory"]
    reason = sizes.variant("too_large")["reason"]
    assert reason["code"] == "exception"
    assert "memory" in reason["values"]["message"]
    assert sizes.variant("larger")["reason"]["code"] == "smaller_did_not_fit"
    assert sizes.variant("larger")["reason"]["values"] == {"smaller": "too_large"}
    assert sizes.comparison("too_large") == {}
    assert sizes.run["failures"] == []


def test_sizes_that_fit_one_by_one_are_measured_one_by_one(sizes):
    assert len(sizes.findings("ran_one_at_a_time")) == 1
    assert sizes.run["method"]["epochs"] >= 8
    assert measured_speedup(sizes, "large", "small") > 100
    small, middle, large = (sizes.variant(name) for name in ("small", "middle", "large"))
    assert per_item_s(small) > max(per_item_s(middle), per_item_s(large))


def test_sizes_that_leave_most_of_the_memory_are_checked_on_other_values(lab):
    run = lab.run(lab.write("remembers.py", REMEMBERS), time_s="0.2")
    assert run.variant("larger")["status"] == "wrong"


def per_item_s(variant):
    return variant["time_s"]["value"] / variant["items"]


def test_a_variant_may_step_aside(sizes):
    reason = sizes.variant("aside")["reason"]
    assert reason["code"] == "skipped_by_variant"
    assert reason["values"] == {"reason": "needs [more] bits"}
    assert sizes.comparison("aside") == {}
    assert "needs [more] bits" in sizes.stderr
