"""Recordings of several ranks beside each other: who the others wait for in collectives.

The kernel of a collective runs on every rank until all have come and all is moved. The shortest of
a collective's kernels is its transfer, on the rank that came last; what it runs longer on others is
waiting. So nothing depends on the clocks of the ranks.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gpulab.core.payloads import GROUP, communicates
from gpulab.traces.trace import Trace

_KIND = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|reduce", re.I)
_FEWEST = 2
Collectives = Mapping[tuple[str, str], list[float]]
"""Seconds of each, in their order, by kind and process group."""


class RankWaits(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of one rank that other recordings have too. `last`: to how many of them it
    came last.
    """

    file: str
    waiting_s: float
    transferring_s: float
    last: int
    collectives: int


def collectives_of(trace: Trace) -> Collectives:
    """Return the collectives of a recording; transfers between two ranks are none."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in sorted(trace.device, key=lambda event: event.start):
        kind = _KIND.search(event.name) if communicates(event.name) else None
        if kind is not None:
            group = str(event.arguments.get(GROUP, ""))
            found[kind[0].lower().replace("_", ""), group].append(event.end - event.start)
    return found


def waits_of(files: Sequence[str], found: Sequence[Collectives]) -> list[RankWaits]:
    """Return what each rank waits in the collectives that have as many calls on all the ranks of
    their group; nothing where there are none.
    """
    waiting: dict[int, float] = defaultdict(float)
    transferring: dict[int, float] = defaultdict(float)
    last: Counter[int] = Counter()
    count: Counter[int] = Counter()
    for ranks, times in _matched(found):
        transfer_s = min(times)
        last[ranks[times.index(transfer_s)]] += 1
        for rank, seconds in zip(ranks, times, strict=True):
            waiting[rank] += seconds - transfer_s
            transferring[rank] += transfer_s
            count[rank] += 1
    return [
        RankWaits(
            file=files[rank],
            waiting_s=waiting[rank],
            transferring_s=transferring[rank],
            last=last[rank],
            collectives=count[rank],
        )
        for rank in sorted(count)
    ]


def _matched(found: Sequence[Collectives]) -> Iterator[tuple[list[int], list[float]]]:
    """Yield the ranks of each collective, and how long it ran on each of them."""
    for key in {key: None for each in found for key in each}:
        ranks = [rank for rank, each in enumerate(found) if key in each]
        calls = [found[rank][key] for rank in ranks]
        if len(ranks) >= _FEWEST and len({len(each) for each in calls}) == 1:
            for times in zip(*calls, strict=True):
                yield ranks, list(times)
