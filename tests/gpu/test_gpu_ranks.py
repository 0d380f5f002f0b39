"""Ranks with a GPU each: NCCL returns before it has begun, and waits on the device for ever."""

import json

import pytest
import torch
from failing_ranks import FAULTS, SAYS, SUMS, assert_named

from gpulab.core.statuses import ExitCode, Status

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two CUDA devices"),
]


def run(lab, source, *arguments):
    lab.timeout_s = 120
    path = lab.write("ranks.py", source)
    flags = ("--device", "cuda:0", "--smoke", "--telemetry", "off", "--set", "ranks=2", "--json")
    done = lab.call("--run", path, *flags, *arguments)
    done.result = json.loads(done.stdout)
    assert lab.none_left()
    return done


def test_each_rank_is_checked_timed_and_read(lab):
    done = run(lab, SUMS)
    statuses = {name: done.variant(name)["status"] for name in ("at_once", "wrong_on_the_last")}
    assert statuses == {"at_once": Status.OK, "wrong_on_the_last": Status.WRONG}
    ranks = done.variant("at_once")["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert all(rank["time_s"] > 0 and rank["sm_mhz"] > 0 and rank["power_w"] > 0 for rank in ranks)


@pytest.mark.parametrize("how", SAYS)
def test_a_rank_that_fails_is_named_and_no_process_is_left(lab, how):
    done = run(lab, FAULTS, "--set", f"how={how}")
    assert done.code == ExitCode.FAILED
    assert_named(how, done.run["failures"][0]["cause"]["values"]["message"], last=1)
