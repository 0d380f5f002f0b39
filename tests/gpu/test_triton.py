"""Kernels in Triton on a real GPU: read as they were launched, tuned, and each candidate that fails
with its reason.
"""

import json

import pytest

from gpulab.catalog.needs import missing

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(missing("cuda") is not None, reason="no CUDA device"),
]

SCALED = '''
"""Scale: a vector, twice."""
import torch
import triton
import triton.language as tl
from gpulab import Scenario, Work, tune
scenario = Scenario("mine", needs=("cuda", "triton"), clock="device", params={"n": 2**24})

@triton.jit
def scaled(a, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, 2 * tl.load(a + place, mask=place < n), mask=place < n)

@scenario.variant
def plain(lab, n):
    """torch."""
    a = torch.rand(n, device=lab.device)
    return Work(lambda: 2 * a, inputs=a)

@scenario.variant
def in_triton(lab, n):
    """Tuned."""
    a = torch.rand(n, device=lab.device)
    out = torch.empty_like(a)

    def make(block, warps):
        def step():
            scaled[(triton.cdiv(n, block),)](a, out, n, BLOCK=block, num_warps=warps)
            return out

        return Work(step, inputs=a)

    sizes = ((32, 1), (256, 4), (1024, 4), (1024, 8), (4096, 8), (1000, 4))
    return tune(lab, [{"block": block, "warps": warps} for block, warps in sizes], make)
'''


def test_a_kernel_in_triton_is_tuned_and_read(lab):
    lab.timeout_s = 300
    lab.write("scaled.py", SCALED)
    options = (
        "--device",
        "cuda:0",
        "--time",
        "1",
        "--json",
        "--telemetry",
        "off",
        "--profile",
        "off",
    )
    finished = lab.call("--run", "scaled.py", *options)
    finished.result = json.loads(finished.stdout)
    variant = finished.variant("in_triton")
    (kernel,) = variant["kernels"]
    assert kernel["name"] == "scaled"
    assert kernel["registers"] > 0
    assert kernel["stages"] >= 1
    assert kernel["spill_bytes"] == 0
    assert any(kind.startswith("load_") for kind in kernel["instructions"])
    tried = variant["tuning"]["tried"]
    chosen = dict(entry.split("=") for entry in tried[0]["config"].split())
    assert kernel["threads"] == 32 * int(chosen["warps"])
    assert tried[-1]["config"] == "block=1000 warps=4"
    assert "power of 2" in tried[-1]["reason"]
    assert "block=32 warps=1" not in (entry["config"] for entry in tried[:2])
    assert finished.verdict("in_triton") not in ("wrong", "invalid")
