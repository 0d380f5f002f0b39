"""Several runs, one below the other: what each claims, what it measured, and why one came to
nothing.
"""

from pathlib import Path
from types import SimpleNamespace

from conftest import printed
from found import finding
from run_reports import compared, run, two_variants, variant

from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.headless.run import curves, ending, run_line, summary

FAILED = {"outcome": Conclusion.FAILED, "exit_code": ExitCode.FAILED}


def lines_of(*reports, width=120):
    return [line.rstrip() for line in printed(summary(reports), width).splitlines()]


def test_columns_line_up_over_all_runs_and_a_variant_has_its_claim():
    first = two_variants(scenario="first", claim="2x")
    second = run(
        variant("base"),
        variant("a_longer_name", claim="3x, surely"),
        scenario="second",
        comparisons=[compared("a_longer_name", "base", 31.4)],
    )
    head, name, row, other_name, other_row = lines_of(first, second)
    assert head.split() == ["speedup", "99", "%", "interval", "verdict", "computing"]
    assert (name, other_name) == ("first  2x", "second")
    assert row.index("faster") == other_row.index("faster") == head.index("verdict")
    assert other_row.split() == [
        "a_longer_name",
        "31.4x",
        "29.8",
        "to",
        "33.0",
        "faster",
        "3x,",
        "surely",
    ]


def test_a_ladder_has_only_its_rows_against_the_baseline():
    ladder = run(
        variant("a"),
        variant("b"),
        comparisons=[compared("b", "a", 2.0), compared("b", "old_b", 0.9, Verdict.SLOWER)],
    )
    assert [line.split()[0] for line in lines_of(ladder)[2:]] == ["b"]
    scale = run(variant("a"), variant("b"), variant("c"), comparisons=[compared("c", "b", 1.5)])
    assert [line.split()[0] for line in lines_of(scale)[2:]] == ["c"]


def test_a_run_that_came_to_nothing_has_its_reason():
    failed = run(scenario="broken", reason=finding("no_gpu", need="cuda"), **FAILED)
    assert lines_of(failed)[-1] == "  failed: needs cuda: no NVIDIA device in this machine"
    alone = run(variant("only"), scenario="alone")
    assert (
        lines_of(alone)[-1]
        == "  measured: nothing is compared; --run it alone to see what it shows"
    )


def test_the_line_of_a_run_has_its_number_and_verdicts_or_its_reason():
    lines = [run_line(two_variants(), 3, 12), run_line(two_variants(quick=True), 10, 12)]
    assert [" ".join(line.plain.split()) for line in lines] == [
        "3 of 12 scenario 1.50x faster new 1.425 to 1.575",
        "10 of 12 scenario 1.50x* faster new 1.425 to 1.575",
    ]
    assert len({line.plain.index("new") for line in lines}) == 1
    failed = run(
        scenario="broken",
        reason=finding("exception", "v", message="boom", stage="build", line=3),
        **FAILED,
    )
    assert run_line(failed, 4, 12).plain == " 4 of 12  broken  failed  boom (v, build, line 3)"


def test_what_a_library_skipped_is_summed_up_by_its_reason():
    skipped = [
        run(scenario=name, outcome=Conclusion.SKIPPED, reason=finding("no_gpu", need="cuda"))
        for name in ("first", "second")
    ]
    text = printed(ending([two_variants(), *skipped]), 200)
    assert text == "2 skipped: needs cuda: no NVIDIA device in this machine: first, second\n"


def test_a_sweep_has_a_curve_where_two_of_its_values_were_timed():
    timed, failed = two_variants(), run(variant("base", time_s=None), **FAILED)
    first = SimpleNamespace(label="first", reports=[timed, failed, timed])
    second = SimpleNamespace(label="second", reports=[timed, timed])
    alone = SimpleNamespace(label="alone", reports=[timed, failed])
    target = Path("to/out.svg")
    assert list(curves([first], target)) == [([timed, timed], target)]
    assert [path.name for _, path in curves([first, second, alone], target)] == [
        "out-first.svg",
        "out-second.svg",
    ]
