"""`--fleet ray` on a real cluster of four simulated nodes on this machine, one of which is
killed.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import wait_for

from gpulab.core.events import RunEnded
from gpulab.core.run_file import read_run_file

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
NODES = 4
SCENARIO = """
    \"\"\"Small: x.\"\"\"
    import os
    from pathlib import Path
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario(topic="mine", params={"n": 1000})

    @scenario.variant
    def before(lab, n):
        \"\"\"x + 1.\"\"\"
        Path(os.environ["BEGUN"], f"begun-{os.getppid()}").touch()
        x = torch.rand(n)
        return Work(lambda: x + 1, inputs=x)

    @scenario.variant
    def after(lab, n):
        \"\"\"1 + x.\"\"\"
        x = torch.rand(n)
        return Work(lambda: 1 + x, inputs=x)
"""


@pytest.fixture
def cluster(lab):
    """The process that has the nodes; the lab's environment knows its address."""
    lab.write("mine.py", SCENARIO)
    lab.env["BEGUN"] = str(lab.folder)
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("ray_nodes.py"), str(NODES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=lab.env,
        cwd=lab.folder,
        text=True,
    )
    lab.env["RAY_ADDRESS"] = process.stdout.readline().strip()
    yield process
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_node_that_is_killed_is_told_and_the_others_have_run_files(lab, cluster):
    lab.timeout_s = 400
    folder = lab.folder / "out"
    options = ("--device", "cpu", "--time", "20", "--output", folder)
    process = lab.start("--fleet", "ray", "mine.py", *options)

    def all_have_begun():
        return len(list(lab.folder.glob("begun-*"))) == NODES

    wait_for(all_have_begun, within=300)
    cluster.stdin.write("kill\n")
    cluster.stdin.flush()
    assert cluster.stdout.readline() == "killed\n"
    stdout, stderr = (text.decode() for text in process.communicate(timeout=lab.timeout_s))
    assert f"Ray: {NODES} nodes, a task each" in stderr
    assert stderr.count("failed: lost") == 1
    files = sorted(folder.glob("*.jsonl"))
    assert len(files) == NODES - 1
    for file in files:
        assert isinstance(read_run_file(file).events[-1], RunEnded)
    # all nodes are one machine, without a GPU: one row, and nothing to compare it with
    assert "1 GPU on 1 host" in stdout
    assert process.returncode == 3


def test_without_a_cluster_or_a_scenario_it_says_what_to_do(lab):
    process = lab.call("--fleet", "ray", "nothing_of_this_name")
    assert process.code == 2
    process = lab.call("--fleet", "ray", "batched_matmul")
    assert process.code == 2
    assert "--fleet ray: no Ray cluster is running here" in process.stderr
    process = lab.call("--fleet", "ray")
    assert process.code == 2
    assert "--fleet ray SCENARIO measures on a Ray cluster" in process.stderr
    process = lab.call("--fleet", "folder", "--quick")
    assert "--fleet FOLDER measures nothing" in process.stderr
