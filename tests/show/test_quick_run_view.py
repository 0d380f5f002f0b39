"""A quick run is marked wherever its verdicts are shown, and what the mark means stands below."""

import pytest
from conftest import printed
from msgspec.structs import replace
from run_reports import compared, profiled, two_variants

from gpulab.catalog.view import mark
from gpulab.core.statuses import Conclusion, Verdict
from gpulab.draw.styles import QUICK
from gpulab.features.sweeps.view import sweep_view
from gpulab.headless.run import run_line, summary
from gpulab.report.commands import Sweep
from gpulab.show.view import comparison_table
from gpulab.stats.comparison import Comparison


@pytest.mark.parametrize("quick", [False, True])
def test_every_row_of_a_quick_run_has_its_star(quick):
    control = Comparison(variant="control", against="", speedup=1.0, verdict=Verdict.SAME)
    report = two_variants(quick=quick, control=control, params={"n": 1}, best="new")
    star = "*" * quick
    last_words = [line.split()[-1] for line in printed(comparison_table(report)).splitlines()[1:]]
    assert last_words == [star or "baseline", f"faster{star}", f"same{star}"]
    under_way = replace(report, outcome=Conclusion.UNDER_WAY)
    assert f"faster{star}" in printed(comparison_table(under_way)).split()
    swept = sweep_view(Sweep(scenario="s", parameter="n"), [report])
    for text in (printed(summary([report])), printed(swept)):
        assert f"faster{star}" in text.split()
        assert (QUICK in text) == quick
    assert ("x* " in run_line(report, 1, 2).plain) == quick
    assert mark(report).text == f"1.50x{star}"
    unsure = two_variants(
        quick=quick, comparisons=[compared(speedup=1.003, verdict=Verdict.INCONCLUSIVE)], best="new"
    )
    assert mark(unsure).text == f"1.00x?{star}"
    assert mark(profiled(("v", {}), quick=quick)).text == f"timed{star}"
