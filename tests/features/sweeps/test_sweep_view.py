"""A sweep: a row a variant and value, the best of each marked with those as good, and a chart on
one axis.
"""

from conftest import printed
from found import finding
from run_reports import compared, run, variant

from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.features.sweeps.view import sweep_view
from gpulab.report.commands import Contender, Sweep
from gpulab.report.report import Method, Time


def at(value, *medians, items=1.0, **changes):
    """The run at one value; the first variant is the baseline."""
    variants = [
        variant(
            name, items=items, time_s=Time(median=median, low=0.99 * median, high=1.01 * median)
        )
        for name, median in zip(("old", "new"), medians, strict=False)
    ]
    comparisons = [compared("new", "old", medians[0] / medians[1])] if len(medians) > 1 else []
    return run(*variants, params={"n": value}, comparisons=comparisons, **changes)


def lines_of(sweep, reports, width=80):
    return [
        line.rstrip() for line in printed(sweep_view(sweep, reports, width), width).splitlines()
    ]


def test_the_best_value_of_each_variant_is_marked_and_those_as_good():
    reports = [at(16, 2e-3, 1e-3), at(64, 1e-3, 4e-4), at(256, 1.005e-3, 5e-4)]
    sweep = Sweep(
        scenario="s",
        parameter="n",
        best={"old": 64, "new": 64},
        best_among={"old": [64, 256], "new": [64]},
    )
    lines = lines_of(sweep, reports)
    assert lines[0] == "s · n = 16, 64, 256"
    assert lines[2].split() == [
        "n",
        "variant",
        "time/step",
        "±",
        "speedup",
        "99",
        "%",
        "interval",
        "verdict",
    ]
    rows = [line.split() for line in lines[3:9]]
    assert rows[0][:2] == ["16", "old"]
    assert rows[1][0] == "new"  # a value stands once
    assert [row[-1] for row in rows[::2]] == ["±1.0%", "best", "~best"]
    assert rows[3][-2:] == ["faster", "best"]


def final(*speedups, **changes):
    """The final: by contender of the new variant its speedup over the first, with an interval of 5
    % to both sides.
    """
    comparisons = [compared(f"new n={value}", "new n=64", speedup) for value, speedup in speedups]
    contenders = [variant("new n=64"), *(variant(comparison.variant) for comparison in comparisons)]
    return run(*contenders, comparisons=comparisons, method=Method(processes=8), **changes)


def swept(among, final=None, paired=True):
    """The lines about the best of the new variant, which was measured at 16, 64 and 256."""
    contenders = [
        Contender(name=f"new n={value}", variant="new", value=value) for value in (64, 16, 256)
    ]
    evidence = {"best": {"new": among[0]}, "best_among": {"new": among}, "paired": {"new": paired}}
    sweep = Sweep(scenario="s", parameter="n", contenders=contenders, final=final, **evidence)
    reports = [at(16, 2e-3, 1e-3), at(64, 1e-3, 4e-4), at(256, 1.005e-3, 5e-4)]
    lines = lines_of(sweep, reports, width=200)
    return [line for line in lines if line.startswith(("new: ", "final"))]


def test_the_best_is_marked_by_the_evidence_of_the_final():
    assert swept([64], final((16, 0.5), (256, 0.8))) == [
        "new: n=64 is the best, 1.25x (1.190 to 1.316) against n=256",
        "final: 3 points of one run in turn, 8 processes, times per item, paired",
    ]
    best, _ = swept([256], final((16, 0.5), (256, 1.2)))
    assert best == "new: n=256 is the best, 1.20x (1.140 to 1.260) against n=64"


def test_what_cannot_be_told_apart_is_said():
    assert (
        swept([64, 256], final((16, 0.5), (256, 1.0)))[0]
        == "new: n=64 and n=256 are statistically tied"
    )
    assert (
        swept([64, 256, 16], final((16, 1.0), (256, 1.0)))[0]
        == "new: no significant difference between values of n"
    )


def test_without_a_final_the_mark_is_by_medians_and_a_line_says_so():
    assert swept([64], paired=False) == [
        "new: n=64 by medians of separate runs, which no final compared"
    ]
    failed = run(outcome=Conclusion.FAILED, exit_code=ExitCode.FAILED, reason=finding("killed"))
    lines = swept([64], failed, paired=False)
    assert lines[0] == "new: n=64 by medians of separate runs, which no final compared"
    assert lines[-1].startswith("final: failed: killed")


def test_times_are_of_an_item_where_steps_do_several():
    lines = lines_of(Sweep(scenario="s", parameter="n"), [at(1, 4e-3, items=4.0)])
    assert "time/item" in lines[2]
    assert "1.00 ms" in lines[3]


def test_the_chart_has_a_line_a_point_on_an_axis_that_all_share():
    reports = [at(16, 1e-3), at(64, 2e-3)]
    lines = lines_of(Sweep(scenario="s", parameter="n", best={"old": 16}), reports)
    chart = lines.index("time per item, with its 99 % interval")
    first, second = lines[chart + 1 : chart + 3]
    assert first.startswith("old n=16")
    assert first.endswith("1.00 ms best")
    assert first.index("●") < second.index("●")
    ticks = lines[chart + 3]
    assert abs(ticks.index("1 ms") + 2 - first.index("●")) <= 2
    assert abs(ticks.rindex("2 ms") + 2 - second.index("●")) <= 2


def test_every_reason_and_note_has_its_value_and_one_that_all_share_stands_once():
    reason = finding("no_gpu", need="cuda")
    failed = {"outcome": Conclusion.FAILED, "exit_code": ExitCode.FAILED, "reason": reason}
    lines = lines_of(
        Sweep(scenario="s", parameter="n"), [run(params={"n": value}, **failed) for value in (1, 2)]
    )
    assert [line for line in lines if "failed" in line] == [
        "n=1: failed: needs cuda: no NVIDIA device in this machine"
    ]
    noted = at(2, 1e-3, findings=[finding("plain_functions")])
    lines = lines_of(
        Sweep(scenario="s", parameter="n"), [run(params={"n": 1}, **failed), noted], width=200
    )
    assert lines[-2].startswith("n=1: failed: ")
    assert lines[-1].startswith("n=2: plain functions: ")


def test_only_what_weakens_a_result_is_coloured_as_a_note():
    explained = at(1, 1e-3, findings=[finding("weakening")], explanations=[finding("explaining")])
    parts = sweep_view(Sweep(scenario="s", parameter="n"), [explained]).renderables
    assert [(part.plain, part.style) for part in parts[-2:]] == [
        ("n=1: explaining", ""),
        ("n=1: weakening", "yellow"),
    ]
