"""A run of several processes read back: its epochs by process, the run as two, and its seconds by
stage.
"""

from dataclasses import replace
from math import exp

import pytest
from pair_runs import comparisons_of, halves, processes_of
from stages import judgements, run_seconds, table

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.statuses import Stage

NAMES = ("baseline", "control", "unlike")
PROCESSES, EPOCHS, ROUNDS = 16, 2, 3


def ratio(process):
    """log(unlike / baseline) of a process; those of even conductors lie around -0.4, of odd ones
    around -0.2.
    """
    return (-0.2 if process // 2 % 2 else -0.4) + 0.001 * process


def epochs(process):
    """All blocks of a process, in one event."""
    blocks = [
        (process * EPOCHS + epoch, number, variant)
        for epoch in range(EPOCHS)
        for number in range(ROUNDS)
        for variant in range(len(NAMES))
    ]
    factors = (1.0, 1.0, exp(ratio(process)))
    count = len(blocks)
    return e.Samples(
        t=10.0 + process + 0.5,
        names=NAMES,
        complete=(process + 1) * EPOCHS,
        epoch=[epoch for epoch, _, _ in blocks],
        round=[number for _, number, _ in blocks],
        variant=[variant for *_, variant in blocks],
        times_s=[1e-3 * factors[variant] for *_, variant in blocks],
        cpu_s=[1e-3] * count,
        faults=[0] * count,
        switches=[0] * count,
        ended=[10.0 + process + 1e-3 * place for place in range(count)],
        steps=[2] * count,
    )


def run():
    variants = (VariantInfo(name="baseline"), VariantInfo(name="unlike", against="baseline"))
    subject = ScenarioFile(scenario="s", path="s.py", source_sha256="0", variants=variants)
    yield e.RunStarted(
        t=1.0, request=RunRequest(job=Measure(subject=subject), telemetry="off"), at="", host="h"
    )
    yield e.StageStarted(t=3.0, stage=Stage.LOAD)
    yield e.StageStarted(t=3.5, stage=Stage.BUILD, variant="baseline")
    for name in ("baseline", "unlike"):
        yield e.Built(t=4.0, variant=name, build_s=0.1, first_step_s=0.1, items=2.0)
    yield e.StageStarted(t=9.0, stage=Stage.MEASURE)
    for process in range(PROCESSES):
        yield e.ProcessStarted(
            t=10.0 + process,
            process=process,
            seed=process,
            conductor=process // 2 * 2,
            epoch=process * EPOCHS,
        )
        yield epochs(process)
    yield e.Stopped(t=30.0, reason="time")
    yield e.WorkerDone(t=31.0, sent=9)
    yield e.StageStarted(t=34.0, stage=Stage.PROFILE, variant="unlike")
    yield e.WorkerDone(t=36.0, sent=3)
    yield e.RunEnded(t=36.5, outcome="done")


@pytest.fixture(scope="module")
def recorded():
    return list(run())


def test_epochs_stand_in_the_process_that_measured_them(recorded):
    processes = processes_of(recorded)
    assert [len(process) for process in processes] == [EPOCHS] * PROCESSES
    for place, process in enumerate(processes):
        for epoch in process:
            assert epoch.values(("unlike", "baseline")) == pytest.approx([ratio(place)] * ROUNDS)
    assert processes[0][0].rounds[0]["baseline"] == pytest.approx(0.5e-3), "seconds are per item"


def test_the_halves_are_of_the_even_and_of_the_odd_conductors(recorded):
    """Each is a run of its own to the lab, with an interval of its own processes alone."""
    even, odd = (comparisons_of(half)["unlike"] for half in halves(recorded))
    assert even["speedup"] == pytest.approx(exp(0.4 - 0.0065))
    assert odd["speedup"] == pytest.approx(exp(0.2 - 0.0085))
    assert even["low"] > odd["high"]
    assert even["verdict"] == odd["verdict"] == "faster"
    whole = comparisons_of(recorded)
    assert odd["speedup"] < whole["unlike"]["speedup"] < even["speedup"]
    assert whole["control"]["verdict"] == "same"


def test_seconds_by_stage(recorded):
    seconds = run_seconds(recorded, began=0.5)
    assert seconds.stages == pytest.approx(
        {
            "command": 0.5,
            "start": 2.0,
            "load": 0.5,
            "build": 5.5,
            "measure": 22.0,
            "start of the profile": 3.0,
            "profile": 2.0,
            "end": 0.5,
        }
    )
    assert (seconds.verdict, seconds.end) == (29.5, 36.0)
    blocks = [exp(ratio(process)) + 2 for process in range(PROCESSES)]
    assert seconds.timed == pytest.approx(2e-3 * EPOCHS * ROUNDS * sum(blocks))


def test_a_run_without_a_profile_ends_after_its_worker(recorded):
    ended = [event for event in recorded if event.t <= 31.0] + [e.RunEnded(t=31.25, outcome="done")]
    stages = run_seconds(ended).stages
    assert stages["end"] == 0.25
    assert "start of the profile" not in stages


def test_limits_of_a_default_run(recorded):
    seconds = run_seconds(recorded, began=0.5)
    late = [("verdict", 6.0, 29.5, False), ("end", 12.0, 36.0, False)]
    assert list(judgements("batched_matmul", "cpu", seconds)) == late
    assert [row[1] for row in judgements("batched_matmul", "cuda:0", seconds)] == [8.0, 15.0]
    assert [row[1] for row in judgements("training_step", "cuda:0", seconds)] == [20.0, 30.0]
    assert list(judgements("jax_jit", "cpu", seconds)) == [("end", 60.0, 36.0, True)]


def test_a_long_import_of_torch_is_said_and_not_held_against_a_limit(recorded):
    seconds = replace(run_seconds(recorded, began=0.5), verdict=7.0, end=13.0, imports=3.5)
    assert [row[2:] for row in judgements("precision", "cpu", seconds)] == [
        (5.5, True),
        (11.5, True),
    ]
    _, line = table({"precision": [seconds] * 3}, "cpu")
    assert line.split()[:5] == ["precision", "7.0", "s", "13.0", "s"]
    assert line.endswith("1.5 s  6 s yes, 12 s yes")
