"""The processes of a run come from several that have imported torch, each at another address."""

import pytest
from finished_runs import events_of

from gpulab.core.events import ProcessStarted, Reported

SCENARIO = '''
"""Where torch's libraries are."""
import os
import torch
from gpulab import Scenario, Work
scenario = Scenario("test")
X = torch.rand(1000)

def library():
    with open("/proc/self/maps") as maps:
        return next(int(line.split("-")[0], 16) for line in maps if "libtorch_cpu" in line)

@scenario.variant
def first(lab):
    lab.report("parent", os.getppid())
    lab.report("library", library())
    return Work(lambda: X * 2, inputs=X)

@scenario.variant
def second(lab):
    return Work(lambda: X * 2, inputs=X)
'''


def reported(finished, name):
    return [event.value for event in events_of(finished, Reported) if event.name == name]


@pytest.mark.slow
def test_the_processes_of_a_verdict_have_the_libraries_at_several_places(lab):
    path = lab.write("places.py", SCENARIO)
    finished = lab.run(path, "--width", "0.5", time_s="5", fresh=True)
    assert finished.code == 0, finished.stderr
    parents, libraries = reported(finished, "parent"), reported(finished, "library")
    assert len(parents) >= 8
    assert len(set(parents)) == len(set(libraries)) >= 3
    assert all(parents[:8].count(parent) <= 3 for parent in parents)
    started = events_of(finished, ProcessStarted)
    firsts = dict(zip(parents[::-1], [process.process for process in started][::-1], strict=True))
    assert [process.fork_server for process in started] == [firsts[parent] for parent in parents]
