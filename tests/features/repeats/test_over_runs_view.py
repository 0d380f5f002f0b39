"""Several runs of the same: a row an entry with its interval or range, and every run's own
value.
"""

from conftest import printed

from gpulab.core.statuses import Verdict
from gpulab.features.repeats.report import OverRuns
from gpulab.features.repeats.view import over_runs_view
from gpulab.report.report import Time


def entry(runs=8, **changes):
    speedups = [1.5 + 0.01 * number for number in range(runs)]
    ends = {"low": 1.5, "high": 1.57} if runs >= 8 else {}
    usual = {
        "scenario": "s",
        "variant": "new",
        "speedup": 1.54,
        "verdict": Verdict.FASTER,
        "against": "old",
    }
    return OverRuns(runs=runs, speedups=speedups, **{**usual, **ends, **changes})


def lines_of(*entries, ascii_only=False, width=80):
    text = printed(over_runs_view(entries), width, ascii_only=ascii_only)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_each_comparison_has_its_interval_over_runs():
    lines = lines_of(entry())
    assert lines[0] == "over 8 runs, each in processes of its own"
    assert lines[1].split() == ["variant", "runs", "speedup", "99", "%", "interval", "verdict"]
    assert lines[2].split() == ["new", "8", "1.54x", "1.500", "to", "1.570", "faster"]
    assert lines[3] == "new: 1.50x, 1.51x, 1.52x, 1.53x, 1.54x, 1.55x, 1.56x, 1.57x"


def test_how_long_the_runs_took_and_what_they_cannot_know():
    lines = lines_of(entry(span_s=240.0))
    assert lines[0] == "over 8 runs in 4 min, each in processes of its own"
    assert "a drift of the machine over hours is not in it" in lines
    lines = lines_of(entry(span_s=9000.0))
    assert lines[0] == "over 8 runs in 2.5 h, each in processes of its own"
    assert not any("a drift" in line for line in lines)


def test_of_too_few_runs_the_range_is_shown_and_called_so():
    lines = lines_of(entry(3, verdict=Verdict.INCONCLUSIVE))
    assert "range" in lines[1]
    assert lines[2].split() == ["new", "3", "1.54x", "1.500", "to", "1.520", "inconclusive"]
    assert "a 99 % interval over runs needs 8: of fewer their range is shown" in lines
    mixed = lines_of(entry(), entry(3))
    assert "range 1.500 to 1.520" in " ".join(mixed[3].split())


def test_functions_have_times_and_no_verdict():
    function = OverRuns(
        scenario="f", variant="step", runs=2, time_s=Time(median=1e-3), times_s=[0.9e-3, 1.1e-3]
    )
    lines = lines_of(function)
    assert lines[1].split() == ["variant", "runs", "time/step", "range"]
    assert lines[2].split() == ["step", "2", "1.00", "ms", "900", "µs", "to", "1.10", "ms"]


def test_several_scenarios_are_named_and_many_values_cut():
    lines = lines_of(entry(40), entry(40, scenario="t"), width=200)
    assert [line.split()[0] for line in lines[2:4]] == ["s", "t"]
    assert lines[4].endswith(", and 28 more")


def test_it_is_ascii_where_it_must_be_and_nothing_is_said_of_no_runs():
    assert all(line.isascii() for line in lines_of(entry(variant="größer"), ascii_only=True))
    assert lines_of() == ["no run compared anything: there is no interval over runs"]
