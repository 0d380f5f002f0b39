"""Which rank ended the job, and which row of its bill makes a rank late."""

from types import SimpleNamespace

import pytest

from gpulab.features.bill.events import ProcessBooked
from gpulab.features.bill.result import BillReport, BillRow, ProcessBill
from gpulab.features.late.booked import with_row
from gpulab.features.late.ended import ended_rank
from gpulab.features.late.events import CollectiveCall, CollectiveKind, Collectives
from gpulab.features.late.missing import missing_rank
from gpulab.features.late.result import JobRank, JobReport, LateCause, LateRank
from gpulab.features.late.timelines import Timelines
from gpulab.features.program.events import ChildExited, ProcessFollowed

KIND = CollectiveKind(number=0, group="gloo:0", name="all_reduce", sizes=[[8]], line="train.py:7")
BILL = {
    "parent": 1, "role": "program", "started": 0.0, "begun": 0.0, "samples": 1, "own_s": 0.0,
    "collected_s": 0.0, "collections": 0, "preempted_s": 0.0, "rows": [], "other_s": 0.0,
}  # fmt: skip


def ended(exits, *, came=(50, 51), ends=(None, None), heard=(20.0, 20.0)):
    """Two ranks, whose processes are 10 and 11, and how they ended: by code, or minus a signal."""
    timelines = Timelines()
    for rank in range(2):
        calls = [
            CollectiveCall(kind=0, number=number, at=10.0 + number / 100)
            for number in range(1, came[rank] + 1)
        ]
        timelines.add(
            Collectives(
                variant="train.py",
                rank=rank,
                pid=10 + rank,
                host="one 1",
                at=heard[rank],
                t=heard[rank],
                kinds=[KIND],
                calls=calls,
                spans=[],
                stack=[],
            )
        )
    followed = [ProcessFollowed(pid=10 + rank, parent=1, rank=rank, ranked=True) for rank in (0, 1)]
    told = [
        ChildExited(pid=10 + rank, code=max(0, code), signal=max(0, -code), at=20.0 + rank)
        for rank, code in exits.items()
    ]
    booked = [
        ProcessBooked(pid=10 + rank, rank=rank, until=end or 19.0, ended=bool(end), **BILL)
        for rank, end in enumerate(ends)
    ]
    events = {ProcessFollowed: followed, ChildExited: told, ProcessBooked: booked}
    state = SimpleNamespace(part=lambda kind: timelines, all=events.get)
    return ended_rank(state, missing_rank(timelines))


def test_a_killed_rank_is_named_before_the_ones_that_fail_after_it():
    found = ended({0: 1, 1: -9}, ends=(19.5, None))
    assert (found.rank, found.signal, found.name) == (1, 9, "all_reduce")


def test_a_rank_that_left_is_named_and_not_the_one_that_lost_its_peer():
    found = ended({1: 1}, ends=(19.9, 19.8))
    assert (found.rank, found.code, found.signal) == (0, None, None)


def test_a_rank_that_left_without_a_word_is_named_by_what_its_parent_says():
    found = ended({0: 0, 1: 1}, came=(50, 50), ends=(None, 20.5))
    assert (found.rank, found.code, found.signal) == (0, 0, 0)


def test_the_first_that_fails_is_named():
    assert ended({0: 1, 1: 1}, came=(50, 50), ends=(19.9, 19.5)).rank == 1


@pytest.mark.parametrize(("exits", "heard"), [({}, (20.0, 20.0)), ({1: 1}, (20.0, 20.0))])
def test_where_nobody_ended_badly_or_one_hangs_no_end_is_named(exits, heard):
    assert ended(exits, ends=(None, 19.9), heard=heard) is None


def job(late_s=0.01, gc_s=0.0):
    ranks = [
        JobRank(
            rank=rank, host="one", late_s=0.0, last=0.0, loader_s=0.0, 
            backward_s=0.0, gc_s=gc_s if rank else 0.0, other_s=0.0,
        )
        for rank in range(2)
    ]  # fmt: skip
    late = LateRank(
        rank=1, late_s=late_s, share=0.3, last=1.0, cause=LateCause.UNKNOWN, excess_s=0.0,
        collective=0,
    )  # fmt: skip
    return JobReport(steps=100, step_s=0.03, ranks=ranks, late=late)


def proved(*rows, **made):
    bills = [
        ProcessBill(role="program", rank=rank, wall_s=10.0, rows=list(rows) if rank else [])
        for rank in range(2)
    ]
    report = SimpleNamespace(get=lambda name: BillReport(bills=bills))
    return with_row(job(**made), report).late


def test_the_largest_row_beyond_those_of_the_others_is_the_cause():
    line = BillRow(cause="", seconds=0.9, file="/a/train.py", function="tokenize", lines=[44])
    small = BillRow(cause="torch", seconds=0.2, file="/a/train.py", function="main", lines=[7])
    late = proved(small, line)
    assert (late.cause, late.row) == (LateCause.LINE, "train.py:44 tokenize")
    assert late.row_s == pytest.approx(0.9)


def test_waiting_and_preparation_are_no_cause():
    waits = BillRow(cause="collectives", seconds=0.9, file="/a/train.py", function="main")
    prepares = BillRow(cause="", seconds=5.0, file="/a/train.py", function="prepare", lines=[3])
    assert proved(waits, prepares).row == ""


def test_collection_counts_by_what_it_takes_of_the_steps():
    imports = BillRow(cause="garbage collection", seconds=1.2)
    assert proved(imports).row == ""
    late = proved(imports, gc_s=0.008)
    assert (late.cause, late.row) == (LateCause.GC, "garbage collection")
    assert late.row_s == pytest.approx(0.8)


@pytest.mark.parametrize(("ran_s", "cause"), [(3.0, LateCause.LINE), (1.0, LateCause.CPU_STOLEN)])
def test_who_computes_more_is_kept_from_its_cpu_more_and_that_is_no_cause(ran_s, cause):
    """Rank 1 is kept from it by 2 s more, which with three times the work is no more than the other."""
    bills = [
        ProcessBill(
            role="program",
            rank=rank,
            wall_s=10.0,
            rows=[
                BillRow(cause="backward", seconds=ran, function="main"),
                BillRow(cause="preempted", seconds=ran if not rank else 3.0),
            ],
        )
        for rank, ran in enumerate((1.0, ran_s))
    ]
    report = SimpleNamespace(get=lambda name: BillReport(bills=bills))
    assert with_row(job(late_s=0.02), report).late.cause == cause
