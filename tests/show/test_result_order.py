"""A result begins with the answer; what limits each variant is a table, and no sentence is lost."""

import pytest
from conftest import printed
from recorded import recorded_path, report_of

from gpulab.report.live import live_run
from gpulab.show.parts import Shown, Target, on_screen, result
from gpulab.show.short_result import MOST_LINES, short_result
from gpulab.tui.earlier import whole_run

NAME = "older/coalescing"


@pytest.mark.parametrize("width", [80, 120])
def test_the_best_speedup_stands_above_the_table_of_all(width, tmp_path):
    rows = printed(short_result(report_of(NAME, tmp_path)), width).splitlines()
    verdict = next(place for place, row in enumerate(rows) if row.startswith("FASTER "))
    table = next(place for place, row in enumerate(rows) if row.startswith("variant "))
    assert rows[verdict].split()[1:3] == ["coalesced", "6.21x"]
    assert verdict < table
    assert len(rows) <= MOST_LINES
    assert ("time from zero" in rows[table]) == (width >= 120)


def test_a_table_that_has_no_room_beside_a_panel_stands_above_or_below_it():
    run = whole_run(recorded_path("older/timing_without_sync"))
    shown = Shown(run.report, Target.SCREEN, width=115, live=live_run(run.report, run.state, None))
    rows = printed(on_screen(shown), 115).splitlines()
    assert any(row.split()[:1] == ["with_item"] and row.endswith("1.019x") for row in rows)
    assert any(row.startswith("many_launches: ") for row in rows)
    assert any("process medians" in row for row in rows)


def test_a_doubt_stands_in_the_headline_and_its_reasons_below(tmp_path):
    report = report_of("h100/small_kernels", tmp_path)
    for target in (Target.SHORT, Target.SCREEN):
        above = printed(result(Shown(report, target)), 100).partition("── ")[0]
        assert "99 %: 4.45 to 4.48, doubtful" in above
        assert "compiled, in_triton doubtful: one process, not checked: timed steps" in above


def test_speedups_that_are_no_quotients_of_the_times_beside_them_are_explained(tmp_path):
    note = "speedups are of paired blocks"
    for name, said in (("h100/collectives", True), (NAME, False)):
        shown = Shown(report_of(name, tmp_path), Target.SCREEN)
        assert (note in printed(result(shown), 80)) == said


def test_a_screen_lists_all_limits_and_keeps_every_reason(tmp_path):
    report = report_of(NAME, tmp_path)
    text = printed(result(Shown(report, Target.SCREEN, width=120)), 120)
    limits, _, rest = text.partition("── limits")[2].partition("── trust")
    for variant in report.variants:
        assert f"\n{variant.name} " in limits
        assert f"{variant.name}: {variant.roofline.bound}-bound: " in text
    assert "stride_32: latency-bound: " in limits
    assert "stride_4: latency-bound: " in rest
    assert "stride_32 → 97% scale" in limits
