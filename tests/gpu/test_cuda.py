"""What only a CUDA device can show: the wall clock with its waits, the device by UUID, faults of
the device.
"""

import json
import re
import subprocess
import sys

import pytest

from gpulab.catalog.needs import missing

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(missing("cuda") is not None, reason="no CUDA device"),
]

HEAD = """
import torch
from gpulab import Scenario, Work
scenario = Scenario("cuda")
"""


@pytest.fixture(autouse=True)
def _one_cache(lab, tmp_path_factory):
    """Ceilings are measured once for all tests: that takes longer than any of them."""
    lab.env["XDG_CACHE_HOME"] = str(tmp_path_factory.getbasetemp() / "cache")
    lab.timeout_s = 300


def run(lab, what, *arguments):
    done = lab.call(
        "--run", what, "--device", "cuda:0", "--json", "--output", "run.jsonl", *arguments
    )
    done.result = json.loads(done.stdout)
    return done


def test_the_device_is_named_by_uuid_in_every_record(lab):
    done = run(lab, "batched_matmul", "--smoke")
    assert re.match(r"(GPU|MIG)-[0-9a-f-]{36}", done.run["device"]["uuid"])
    assert done.state.device.uuid == done.run["device"]["uuid"]
    assert done.run["environment"]["cuda"] == done.result["environment"]["cuda"]


@pytest.mark.parametrize("name", ["batched_matmul", "optimizer_step"])
def test_the_lessons_end_with_a_verdict(lab, name):
    done = run(lab, name, "--time", "3")
    assert done.code == 0
    assert {variant["status"] for variant in done.run["variants"]} == {"ok"}
    verdicts = {comparison["verdict"] for comparison in done.run["comparisons"]}
    assert "faster" in verdicts
    assert not verdicts & {"wrong", "invalid", "unchecked"}


def test_a_block_waits_for_the_device(lab):
    path = lab.write(
        "wait.py",
        HEAD
        + """
@scenario.variant
def spin(lab):
    out = torch.ones(1, device=lab.device)
    def step():
        torch.cuda._sleep(1_000_000)
        return out.fill_(2)
    return Work(step)
""",
    )
    done = run(lab, path, "--time", "1")
    # A million cycles take at least 0.3 ms at any clock a GPU has; without a wait the launch alone
    # is timed.
    assert done.variant("spin")["time_s"]["value"] > 3e-4
    assert (
        done.variant("spin")["steps_per_block"] * done.variant("spin")["time_s"]["value"] >= 1.5e-3
    )


def test_an_illegal_access_ends_the_run_and_keeps_what_was_measured(lab):
    path = lab.write(
        "illegal.py",
        HEAD
        + """
@scenario.variant
def good(lab):
    data = torch.rand(1024, device=lab.device)
    return Work(lambda: data * 2, inputs=data)

@scenario.variant
def bad(lab):
    data = torch.rand(1024, device=lab.device)
    index = torch.full((1024,), 1 << 40, device=lab.device)
    return Work(lambda: data[index] * 2, inputs=data)
""",
    )
    done = run(lab, path, "--time", "1")
    assert done.code == 3
    assert done.variant("bad")["status"] == "failed"
    assert lab.none_left()


def test_out_of_device_memory_is_named(lab):
    path = lab.write(
        "huge.py",
        HEAD
        + """
@scenario.variant
def small(lab):
    data = torch.rand(1024, device=lab.device)
    return Work(lambda: data * 2, inputs=data)

@scenario.variant
def huge(lab):
    data = torch.rand(2 * lab.memory_bytes // 4, device=lab.device)
    return Work(lambda: data * 2, inputs=data)
""",
    )
    done = run(lab, path, "--time", "1")
    assert [failure.kind for failure in done.state.failures] == ["out of memory"]
    assert done.variant("small")["status"] == "ok"


def test_a_device_that_is_not_there_is_named(lab):
    done = lab.call("--run", "batched_matmul", "--device", "cuda:99", "--json")
    assert done.code == 3
    assert "cuda:99: there are" in done.stderr


LARGE = """
import sys
import torch
from gpulab.engine.build import agreement, tensors

large = torch.arange(8 << 20, dtype=getattr(torch, sys.argv[1])) + 1
(copy,) = tensors.kept([large])
assert copy.is_cuda
assert not tensors.kept([large[:100]])[0].is_cuda
assert agreement.agree([large], [copy]).ok
assert agreement.agree([copy], [large]).ok
assert not tensors.changed([large], [copy])
large[-1] = 0
assert tensors.changed([large], [copy])
assert not agreement.agree([large], [copy]).ok
tensors.put_back([large], [copy])
assert not tensors.changed([large], [copy])
"""


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_large_tensors_on_the_host_are_compared_on_the_device(dtype):
    """In a process of its own: one that keeps a context has every later run say that the device is
    shared.
    """
    subprocess.run(
        [sys.executable, "-c", "import torch; torch.cuda.synchronize()" + LARGE, dtype], check=True
    )
