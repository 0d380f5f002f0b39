"""What each rank of a scenario took, as a part of the report."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from gpulab.features.ranks import result
from gpulab.features.ranks.events import RankTimes
from gpulab.features.ranks.result import RankReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import VariantReport
from gpulab.report.state import RunState, VariantState


@dataclass
class RankTimesState:
    """By variant and rank: seconds per step of its blocks, and what its GPU said."""

    times_s: defaultdict[tuple[str, int], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    memory_bytes: dict[tuple[str, int], int] = field(default_factory=dict)
    sm_mhz: defaultdict[tuple[str, int], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    power_w: defaultdict[tuple[str, int], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, event: RankTimes) -> None:
        key = event.variant, event.rank
        self.times_s[key] += event.times_s
        self.sm_mhz[key] += event.sm_mhz
        self.power_w[key] += event.power_w
        if event.memory_bytes is not None:
            self.memory_bytes[key] = max(event.memory_bytes, self.memory_bytes.get(key, 0))


def _fold(state: RunState, event: RankTimes) -> None:
    state.part(RankTimesState).add(event)


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    seen = draft.state.part(RankTimesState)
    ranks = []
    for key, times_s in sorted(seen.times_s.items()):
        name, rank = key
        if name == variant.name and times_s:
            sm_mhz, power_w = seen.sm_mhz[key], seen.power_w[key]
            ranks.append(
                RankReport(
                    rank=rank,
                    time_s=median(times_s),
                    memory_bytes=seen.memory_bytes.get(key),
                    sm_mhz=median(sm_mhz) if sm_mhz else None,
                    power_w=median(power_w) if power_w else None,
                )
            )
    return report.with_parts(ranks=ranks)


FEATURE = Feature(
    "ranks",
    variant_part=result.VariantPart,
    folds={RankTimes: _fold},
    add_to_variant=_add_to_variant,
    views=[View("ranks.view:ranks", Section.RESOURCES)],
)
