"""Recorded runs beside a stand-in GPU: what of it a report and its printed form say."""

import pytest
from conftest import printed
from recorded import report_of

from gpulab.show.parts import Shown, Target, result


def test_a_power_cap_alone_drops_nothing(tmp_path):
    report = report_of("standin-capped", tmp_path)
    assert [finding.code for finding in report.findings].count("power_capped") == 1
    assert [comparison.dropped for comparison in report.comparisons] == [0, 0, 0]
    assert report.exit_code == 0


def test_without_gpm_there_are_rates_derived_from_declared_work(tmp_path):
    report = report_of("standin-no-gpm", tmp_path)
    assert "sm" in report.telemetry.unsupported
    for variant in report.variants:
        assert variant.solo_run.flops_per_s == pytest.approx(
            variant.flops / variant.solo_run.time_s.value
        )
        assert variant.flops_per_s == pytest.approx(variant.flops / variant.time_s.value)
    text = printed(result(Shown(report, Target.TERMINAL)), 160)
    assert "FLOP/s, derived" in text
    assert "B/s, derived" in text
    assert "SM %" not in text
