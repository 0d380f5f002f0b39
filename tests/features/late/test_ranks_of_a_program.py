"""`gpulab --run -- torchrun ...`: who is late, and who does not come."""

import json
import signal
import sys
import threading

import pytest

pytestmark = pytest.mark.slow
JOB = """
    import os, time
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    class Rows(Dataset):
        def __len__(self):
            return 30

        def __getitem__(self, index):
            time.sleep(0.12 if rank else 0.01)
            return torch.full((8,), float(index))

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for batch in DataLoader(Rows(), batch_size=1):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        dist.all_reduce(model.weight.grad)
        optimizer.step()

    def stuck():
        while True:
            time.sleep(1)

    if rank:
        stuck()
    dist.barrier()
"""


@pytest.fixture(scope="module")
def hung(module_lab):
    """What was said while rank 1 hung after its steps, and the result of the job."""
    lab = module_lab
    lab.write("job.py", JOB)
    job = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    job = (*job, "--standalone", "job.py")
    flags = ("--telemetry", "off", "--profile", "off", "--json", "r.json")
    process = lab.start("--run", *flags, "--", *job)
    guard = threading.Timer(300, process.kill)
    guard.start()
    said = ""
    for line in process.stderr:
        said = line.decode()
        if "has not come" in said:
            break
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    guard.cancel()
    return said, stderr.decode(), json.loads((lab.folder / "r.json").read_text())


def test_a_rank_that_does_not_come_is_named_while_the_job_hangs(hung):
    said, _, _ = hung
    assert said.startswith("gpulab: rank 1 has not come to barrier")
    assert "it stands at job.py:" in said
    assert said.endswith(" stuck\n")


def test_the_result_of_a_hang_says_who_and_where(hung):
    _, stderr, result = hung
    missing = result["runs"][0]["program"]["ranks"]["missing"]
    assert missing["rank"] == 1
    assert missing["name"] == "barrier"
    assert missing["line"].startswith("job.py:")
    assert missing["stack"][0].endswith(" stuck")
    assert "rank 1 has not come to barrier" in stderr


def test_a_slow_loader_of_one_rank_is_found(hung):
    _, stderr, result = hung
    run = result["runs"][0]
    job = run["program"]["ranks"]
    late = job["late"]
    assert (late["rank"], late["cause"]) == (1, "loader")
    assert late["late_s"] > 0.05
    assert job["collectives"][late["collective"]]["line"].startswith("job.py:")
    assert "rank_is_late" in [finding["code"] for finding in run["explanations"]]
    assert "its DataLoader takes" in stderr
