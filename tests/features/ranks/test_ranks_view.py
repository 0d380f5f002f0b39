"""What each rank of a scenario took, and what its GPU said just after each block."""

import lzma

from conftest import printed
from msgspec.structs import replace
from recorded import recorded_path

from gpulab.core.run_file import read_run_file
from gpulab.features.ranks.events import RankTimes
from gpulab.features.ranks.view import ranks
from gpulab.report.build import build_report, fold_all


def test_each_rank_has_its_time_and_what_its_gpu_said(tmp_path):
    """Late rank, recorded on two H200s before clocks were read."""
    path = tmp_path / "late_rank.jsonl"
    path.write_bytes(lzma.decompress(recorded_path("h200/late_rank").read_bytes()))
    events = read_run_file(path).events
    report = build_report(fold_all(events))
    assert [[rank.rank for rank in each.ranks] for each in report.variants] == [[0, 1]] * 3
    assert "MHz" not in printed(ranks(report), width=120)

    def read(event):
        if not isinstance(event, RankTimes):
            return event
        sm_mhz = [1980.0, 1200.0, 1210.0] if event.rank else [1980.0]
        return replace(event, sm_mhz=sm_mhz, power_w=[300.0])

    report = build_report(fold_all(map(read, events)))
    assert [(rank.sm_mhz, rank.power_w) for rank in report.variants[0].ranks] == [
        (1980.0, 300.0),
        (1210.0, 300.0),
    ]
    assert "1,210 MHz, 300 W" in printed(ranks(report), width=120)
