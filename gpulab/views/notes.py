"""Notes below a result, ranked by what they change: what takes it back, what weakens its number, what explains it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from gpulab.protocol.finding import Finding
from gpulab.report.report import RunReport
from gpulab.views.findings import lines

MOST = 3
_INVALIDATING = frozenset(
    {"events_lost", "events_forged", "events_unconfirmed", "event_repeated", "event_after_end", "event_not_allowed"}
    | {"events_make_no_sense", "lab_functions_replaced", "run_file_cut", "garbled_lines", "work_beside_the_stream"}
    | {"xid", "ecc_errors", "row_remapping_failed", "declared_unchecked", "returns_nothing", "plain_functions"}
)
_EXPLAINING = frozenset(
    {"solo_run_differs", "moves_more_bytes", "power_capped", "lower_precision", "pcie_narrow", "gaps_in_device_time"}
    | {"ceilings_not_used", "ceiling_failed", "ceilings_failed", "ceiling_cache_unreadable", "phases_failed"}
    | {"profiling_failed", "profiling_variant_failed", "profiling_ended", "profiling_device_in_error"}
    | {"trace_not_written", "trace_is_no_list", "trace_events_lack_a_field", "processes_left_running"}
    | {"malformed_event_lines", "unknown_events", "row_remapping_pending"}
)
_REMARKS = frozenset({"first_step_sets_up", "page_faults", "same_operations"})
"""Explanations that are notes like the others; the rest belongs to the result."""


class Rank(IntEnum):
    INVALIDATING = 0
    WEAKENING = 1
    EXPLAINING = 2
    REMARK = 3


def rank_of(finding: Finding) -> Rank:
    """What a finding changes."""
    if finding.code in _REMARKS:
        return Rank.REMARK
    if finding.code in _EXPLAINING:
        return Rank.EXPLAINING
    return Rank.INVALIDATING if finding.code in _INVALIDATING else Rank.WEAKENING


def _rank_in(report: RunReport, finding: Finding) -> Rank:
    """Above a result that begins with its sustained speedups, it need not be said again that they are others."""
    heading = any(comparison.sustained and comparison.sustained.heads for comparison in report.comparisons)
    return Rank.REMARK if heading and finding.code == "solo_run_differs" else rank_of(finding)


def conclusions(report: RunReport) -> list[str]:
    """Explanations that belong to the result, a line each."""
    return lines(finding for finding in report.explanations if finding.code not in _REMARKS)


def notes(report: RunReport, *, most: int | None = MOST) -> tuple[list[str], list[str], int]:
    """(remarks, notes, how many more there are): of both together `most`, those that change the result first."""
    remarks = [finding for finding in report.explanations if finding.code in _REMARKS]
    ranked: Sequence[Finding] = sorted(report.findings, key=lambda finding: _rank_in(report, finding))
    weakening, explaining = lines(ranked), lines(remarks)
    if most is None:
        return explaining, weakening, 0
    kept = weakening[:most]
    remarked = explaining[: most - len(kept)]
    return remarked, kept, len(weakening) + len(explaining) - len(kept) - len(remarked)
