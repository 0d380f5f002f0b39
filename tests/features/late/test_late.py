"""Who is late: by a recorded job of four ranks, and by jobs made up."""

import lzma
import random
from dataclasses import dataclass, field

import msgspec
import pytest
from recorded import CORPUS

from gpulab.features.late.analysis import analysed
from gpulab.features.late.events import (
    CollectiveCall,
    CollectiveKind,
    Collectives,
    RankActivity,
    RankSpan,
)
from gpulab.features.late.result import LateCause
from gpulab.features.late.rows import clock_offsets
from gpulab.features.late.timelines import Timelines

KIND = CollectiveKind(number=0, group="gloo:0", name="all_reduce", sizes=[[1000]])
SMALL = CollectiveKind(number=1, group="gloo:1", name="broadcast", sizes=[[1]], line="train.py:7")


def recorded(name="late-backward"):
    """The collectives of a job. By default of 4 gloo ranks, where 30 ms were planted in the backward
    of rank 2.
    """
    lines = lzma.decompress((CORPUS / "ranks" / f"{name}.lines.xz").read_bytes())
    return [msgspec.json.decode(line, type=Collectives) for line in lines.splitlines()]


def folded(events):
    timelines = Timelines()
    for event in events:
        timelines.add(event)
    return timelines


def on_another_host(event, seconds):
    """The same of a host whose clock is ahead."""
    return msgspec.structs.replace(
        event,
        host="other 2",
        at=event.at + seconds,
        calls=[msgspec.structs.replace(call, at=call.at + seconds) for call in event.calls],
        spans=[
            msgspec.structs.replace(span, begun=span.begun + seconds, ended=span.ended + seconds)
            for span in event.spans
        ],
    )


@dataclass
class Made:
    """A job whose ranks take 20 ms in each of loader, forward and backward, and 10 ms in others;
    `more` is what a rank takes beyond, by kind.
    """

    ranks: int = 4
    steps: int = 40
    more: dict[int, dict[str, float]] = field(default_factory=dict)
    every: int = 1
    until: int = 1_000
    transfer_s: float = 0.001
    small: bool = False
    """Whether each step begins with a small collective that the program calls."""
    stops: int | None = None
    """The rank that does not come after the last step."""

    def events(self):
        spans = {rank: [] for rank in range(self.ranks)}
        calls = {rank: [] for rank in range(self.ranks)}
        now = 100.0
        for step in range(self.steps):
            arrivals = {rank: self._step(rank, step, now, spans[rank]) for rank in spans}
            end = max(arrivals.values()) + self.transfer_s
            for rank, at in arrivals.items():
                calls[rank].append(CollectiveCall(kind=0, number=step + 1, at=at))
                begun = spans[rank].pop()
                spans[rank].append(RankSpan(kind=RankActivity.BACKWARD, begun=begun, ended=end))
                spans[rank].append(RankSpan(kind=RankActivity.STEP, begun=end, ended=end))
            now = end
            if self.small:
                for rank in spans:
                    calls[rank].append(CollectiveCall(kind=1, number=step + 1, at=now + 1e-5))
                    waits = RankSpan(kind=RankActivity.CALL, begun=now, ended=now + 0.001)
                    spans[rank].append(waits)
                now += 0.001
        return [self._event(rank, now, spans[rank], calls[rank]) for rank in spans]

    def _step(self, rank, step, now, spans):
        """Until it comes; the last entry is when its backward began."""
        more = self.more.get(rank, {}) if step % self.every == 0 and step < self.until else {}
        now += 0.01 + more.get("other", 0.0)
        for kind in (RankActivity.LOADER, RankActivity.FORWARD):
            took_s = 0.02 + more.get(kind, 0.0)
            if kind == RankActivity.FORWARD and "gc" in more:
                pause = RankSpan(kind=RankActivity.GC, begun=now, ended=now + more["gc"])
                spans.append(pause)
                took_s += more["gc"]
            spans.append(RankSpan(kind=kind, begun=now, ended=now + took_s))
            now += took_s
        spans.append(now)
        return now + 0.02 + more.get("backward", 0.0)

    def _event(self, rank, now, spans, calls):
        if rank == self.stops:
            calls = calls[:-1]
        return Collectives(
            variant="train.py",
            rank=rank,
            pid=rank + 1,
            host="one 1",
            at=now + 30.0,
            t=now + 30.0,
            kinds=[KIND, SMALL],
            calls=calls,
            spans=spans,
            stack=["train.py:12 load"] if rank == self.stops else [],
        )


def report(**made):
    return analysed(folded(Made(**made).events()))


def test_the_late_rank_of_a_recorded_job_and_why():
    job = analysed(folded(recorded()))
    assert job.late.rank == 2
    assert job.late.cause == LateCause.BACKWARD
    assert job.late.late_s == pytest.approx(0.030, abs=0.006)
    assert job.late.excess_s == pytest.approx(0.030, abs=0.006)
    assert job.collectives[0].last_rank == 2
    assert all(rank.late_s < 0.005 for rank in job.ranks if rank.rank != 2)


@pytest.mark.parametrize("ahead_s", [0.05, -0.05, 3600.0])
def test_clocks_of_two_hosts_are_aligned(ahead_s):
    events = [on_another_host(each, ahead_s) if each.rank > 1 else each for each in recorded()]
    timelines = folded(events)
    assert clock_offsets(timelines)["other 2"] == pytest.approx(ahead_s, abs=0.003)
    late, alone = analysed(timelines).late, analysed(folded(recorded())).late
    assert (late.rank, late.cause) == (2, LateCause.BACKWARD)
    assert late.late_s == pytest.approx(alone.late_s, abs=0.003)


def test_a_rank_that_has_a_host_for_itself_is_late_there_too():
    events = Made(ranks=2, more={1: {"loader": 0.03}}).events()
    events = [on_another_host(each, 0.05) if each.rank else each for each in events]
    late = analysed(folded(events)).late
    assert (late.rank, late.cause) == (1, LateCause.LOADER)
    assert late.late_s == pytest.approx(0.03)


def test_of_a_balanced_job_nobody_is_late():
    job = report()
    assert job.late is job.slow is job.missing is None
    assert job.step_s == pytest.approx(0.071)
    assert [rank.loader_s for rank in job.ranks] == pytest.approx([0.02] * 4)
    assert [rank.backward_s for rank in job.ranks] == pytest.approx([0.02] * 4)
    assert [rank.other_s for rank in job.ranks] == pytest.approx([0.03] * 4)


@pytest.mark.parametrize("part", ["loader", "backward", "gc", "other"])
def test_the_part_that_takes_longer_is_the_cause(part):
    late = report(more={3: {part: 0.02}}).late
    assert (late.rank, late.cause) == (3, LateCause(part))
    assert late.excess_s == pytest.approx(0.02)
    assert late.last == 1


def test_a_rank_that_pauses_in_some_steps():
    late = report(more={1: {"gc": 0.2}}, every=10, steps=80).late
    assert (late.rank, late.cause) == (1, LateCause.GC)
    assert late.late_s == pytest.approx(0.02, rel=0.2)
    assert late.last < 0.6


def test_a_rank_that_was_late_while_it_filled_a_cache_is_not():
    assert report(more={1: {"other": 0.5}}, until=14, steps=80).late is None
    assert report(more={1: {"other": 0.5}}, steps=80).late is not None


def test_a_collective_that_takes_long_once_all_have_come():
    job = report(transfer_s=0.05, small=True)
    assert job.late is None
    assert job.collectives[job.slow].name == "all_reduce"
    assert job.collectives[job.slow].transfer_s == pytest.approx(0.05)


def test_a_step_may_have_collectives_of_some_ranks_alone():
    replace = msgspec.structs.replace
    events = [
        replace(event, calls=[call for call in event.calls if not call.kind or event.rank < 2])
        for event in Made(more={3: {"backward": 0.02}}, small=True).events()
    ]
    job = analysed(folded(events))
    assert job.late.rank == 3
    assert len(job.collectives) == 2


def test_a_rank_that_does_not_come_is_named_with_where_it_stands():
    missing = report(stops=1).missing
    assert (missing.rank, missing.name) == (1, "all_reduce")
    assert missing.stack == ["train.py:12 load"]
    assert missing.waiting_s == pytest.approx(30, abs=0.1)


def test_one_rank_alone_is_compared_with_nobody():
    assert report(ranks=1) is None


def test_times_on_the_device_count_where_it_says_them():
    """All ask for it at once on the host; the one that the device was late in waits least."""
    events = []
    for event in Made().events():
        took_s = 0.002 if event.rank == 3 else 0.022
        calls = [msgspec.structs.replace(call, took_s=took_s) for call in event.calls]
        events.append(msgspec.structs.replace(event, calls=calls))
    late = analysed(folded(events)).late
    assert late.rank == 3
    assert late.late_s == pytest.approx(0.02)


@pytest.mark.parametrize("cause", [LateCause.BACKWARD, LateCause.LOADER])
def test_with_nccl_the_planted_time_is_found(cause):
    """Two H200s. Rank 0 loads its next batch while its device waits, and so comes up to 52 ms
    before rank 1, in whose loader or backward 30 ms were planted.
    """
    late = analysed(folded(recorded(f"nccl-{cause}"))).late
    assert (late.rank, late.cause) == (1, cause)
    assert late.late_s == pytest.approx(0.030, abs=0.003)


@pytest.mark.parametrize("name", ["nccl-clean", "nccl-clean-4"])
def test_with_nccl_nobody_is_late_who_costs_nothing(name):
    """Its device comes 13 ms after the other, which loads meanwhile; of four H100s 17 ms in a few
    steps, since it began later.
    """
    assert analysed(folded(recorded(name))).late is None


@dataclass
class Bursts(Made):
    """A job on devices whose hosts run ahead: they ask for ten steps at once, then wait for them."""

    def events(self):
        events = []
        for event in super().events():
            took_s = 0.002 if event.rank == 3 else 0.03
            calls = [
                msgspec.structs.replace(
                    call, took_s=took_s, at=100.0 + call.number // 10 + call.number % 10 * 1e-3
                )
                for call in event.calls
            ]
            spans = [
                RankSpan(kind=RankActivity.STEP, begun=call.at + 5e-4, ended=call.at + 5e-4)
                for call in calls
            ]
            events.append(msgspec.structs.replace(event, calls=calls, spans=spans))
        return events


def test_a_share_is_of_the_step_as_it_is_where_the_host_runs_ahead():
    late = analysed(folded(Bursts(steps=80).events())).late
    assert late.rank == 3
    # 28 ms of a step of 0.1 s, which the hosts ask for in 1 ms
    assert late.share == pytest.approx(0.28, abs=0.05)


@dataclass
class Unequal(Made):
    """Batches of random lengths on each rank."""

    seed: int = 0

    def events(self):
        draw = random.Random(self.seed)
        lengths = {rank: [draw.uniform(0.0, 0.08) for _ in range(self.steps)] for rank in range(2)}
        self.lengths = lengths
        return super().events()

    def _step(self, rank, step, now, spans):
        self.more = {rank: {"forward": self.lengths[rank][step]}}
        return super()._step(rank, step, now, spans)


def test_of_work_that_is_unequal_by_chance_nobody_is_late():
    for seed in (*range(8), 107, 126):  # the last two have one rank last in most steps
        job = analysed(folded(Unequal(ranks=2, seed=seed).events()))
        assert job.late is None, seed


@dataclass
class Collecting(Made):
    """A job whose rank 1 is 10 ms late in each step, and 0.2 s in every fourth: it collects."""

    def _step(self, rank, step, now, spans):
        late = {"forward": 0.01}
        if step % 4 == 0:
            late["gc"] = 0.2
        self.more = {1: late}
        return super()._step(rank, step, now, spans)


def test_a_collector_that_runs_in_few_steps_is_the_cause_by_what_it_takes_of_all():
    late = analysed(folded(Collecting(ranks=2).events())).late
    assert (late.rank, late.cause) == (1, LateCause.GC)
    assert late.excess_s == pytest.approx(0.05, rel=0.1)
