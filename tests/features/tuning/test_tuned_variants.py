"""A scenario that tunes, as a real run on the CPU: chosen, kept, chosen again when it has to be."""

import sqlite3
from contextlib import closing

import pytest

from gpulab.session.store import NAME

TUNED = '''
"""Pieces: sums of a vector."""
import torch
from gpulab import Scenario, Work, tune
scenario = Scenario("mine", params={"n": 65536}, smoke={"n": 4096})

@scenario.variant
def plain(lab, n):
    """One sum."""
    data = torch.rand(n)
    return Work(lambda: data.sum(), inputs=data)

@scenario.variant
def tuned(lab, n):
    """In pieces."""
    data = torch.rand(n)
    out, first = torch.zeros(()), data[:1].clone()

    def make(pieces, fault="none"):
        if fault == "skips":
            lab.skip("no such instruction")
        if fault == "raises":
            raise RuntimeError("does not compile")
        parts = data.chunk(pieces)

        def step():
            if fault != "leaves":
                torch.sum(torch.stack([part.sum() for part in parts]), 0, out=out)
            if fault == "writes":
                data[0] += 1
            if fault == "nan":
                out.fill_(float("nan"))
            count.add_(1)
            return out.add_(5000) if fault == "wrong" else out

        return Work(step, inputs=data, state=count)

    count = torch.zeros(1)
    faults = [{"pieces": 1, "fault": fault} for fault in ("skips", "raises", "wrong", "leaves", "writes", "nan")]
    work = tune(lab, [{"pieces": pieces} for pieces in (4096, 2, 32, 16)] + faults, make)
    if count.item() or data[0] == first[0] + 1:
        raise RuntimeError("what candidates share is not as it was")
    return work

@scenario.variant
def hopeless(lab, n):
    """None of them works."""
    def make(pieces):
        raise RuntimeError(f"{pieces} pieces do not fit")
    return tune(lab, [{"pieces": 1}, {"pieces": 2}], make)

@scenario.variant
def twice(lab, n):
    """Asks twice."""
    data = torch.rand(n)
    candidates = [{"pieces": 1}, {"pieces": 2}]
    tune(lab, candidates, lambda pieces: Work(lambda: data.sum(), inputs=data))
    return tune(lab, candidates, lambda pieces: Work(lambda: data.sum(), inputs=data))

@scenario.variant
def wrongly_asked(lab, n):
    """No configurations."""
    return tune(lab, [], lambda: None)
'''


@pytest.mark.slow
def test_the_fastest_is_chosen_and_kept(lab):
    lab.write("pieces.py", TUNED)
    first = lab.run("pieces.py", time_s="0.1")
    tuned = first.variant("tuned")
    tuning = tuned["tuning"]
    assert tuning["tried"][0]["config"] == "pieces=2"
    assert [entry["config"] for entry in tuning["tried"] if entry["time_s"]][-1] == "pieces=4096"
    assert {entry["config"]: entry["reason"] for entry in tuning["tried"] if entry["reason"]} == {
        "pieces=1 fault=skips": "no such instruction",
        "pieces=1 fault=raises": "does not compile",
        "pieces=1 fault=wrong": "computes something else than pieces=4096",
        "pieces=1 fault=leaves": "its second step leaves another output than its first",
        "pieces=1 fault=writes": "changes its inputs",
        "pieces=1 fault=nan": "its output has NaN",
    }
    assert tuning["rounds"] >= 12
    assert tuning["seconds"] > tuning["build_s"]
    assert tuned["build_s"] < tuning["seconds"]  # choosing is no part of the build
    assert not tuned["tuning_cached"]
    assert first.verdict("tuned") not in ("wrong", "invalid")
    assert "none of 2 candidates works; pieces=1: 1 pieces do not fit" in str(
        first.variant("hopeless")
    )
    assert "tune() is called twice" in str(first.variant("twice"))
    assert "tune(): 0 candidates: write 1 to 1000" in str(first.variant("wrongly_asked"))

    again = lab.run("pieces.py", time_s="0.1")
    assert again.variant("tuned")["tuning_cached"]
    assert again.variant("tuned")["tuning"] == tuning


@pytest.mark.slow
def test_a_kept_choice_that_is_no_candidate_is_measured_again(lab):
    lab.write("pieces.py", TUNED)
    lab.run("pieces.py", time_s="0.1")
    with closing(sqlite3.connect(lab.folder / "state" / "gpulab" / NAME)) as db, db:
        query = "UPDATE kept SET value = CAST(replace(value, 'pieces=2\"', 'pieces=7\"') AS BLOB)"
        db.execute(query)
    changed = lab.run("pieces.py", time_s="0.1").variant("tuned")
    assert not changed["tuning_cached"]
    assert changed["tuning"]["tried"][0]["config"] == "pieces=2"


@pytest.mark.slow
def test_what_was_chosen_is_measured_again_where_the_user_asks_or_the_parameters_are_others(lab):
    lab.write("pieces.py", TUNED)
    first = lab.run("pieces.py", time_s="0.1").variant("tuned")["tuning"]
    asked = lab.run("pieces.py", "--retune", time_s="0.1").variant("tuned")
    assert not asked["tuning_cached"]
    assert asked["tuning"]["at"] >= first["at"]
    assert not lab.run("pieces.py", "--set", "n=30000", time_s="0.1").variant("tuned")[
        "tuning_cached"
    ]
    assert lab.run("pieces.py", time_s="0.1").variant("tuned")["tuning"] == asked["tuning"]


@pytest.mark.slow
def test_a_smoke_run_takes_the_first_that_works(lab):
    lab.write("pieces.py", TUNED.replace("(4096, 2, 32, 16)", "(4, 2)"))
    smoke = lab.run("pieces.py", "--smoke")
    assert smoke.variant("tuned")["tuning"] is None
    assert smoke.variant("tuned")["status"] == "ok"
