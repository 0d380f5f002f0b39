"""Every face says the same of a comparison: its direction however wide it is, or what is excluded;
and nothing says inconclusive of a control that holds 1.
"""

import json
import re
from html import unescape

import pytest
from conftest import printed
from msgspec.structs import replace
from recorded import NAMES, report_of
from run_reports import CPU, compared, run, variant

from gpulab.catalog.view import last_run
from gpulab.core.estimate import Estimate
from gpulab.core.jobs import Required
from gpulab.core.statuses import CheckKind, CheckState, ExitCode, Verdict
from gpulab.features.compare.report import ComparisonReport, Pairing, Row, ScenarioComparison, Side
from gpulab.features.compare.view import comparison_view
from gpulab.features.gate.runs import cases_of_command
from gpulab.features.live.number import NUMBER
from gpulab.features.live.progress import verdict_lines
from gpulab.features.live.screen import panel_view
from gpulab.features.live.times import TIMES
from gpulab.report.live import LiveDetail, LiveReport
from gpulab.report.past import kept_of
from gpulab.report.sentences import to_json
from gpulab.show.facts import answer
from gpulab.show.headline import outcome
from gpulab.show.markdown import comparison as comparison_markdown
from gpulab.show.short_result import short_result
from gpulab.show.view import comparison_table
from gpulab.stats.comparison import Check, Comparison, Trust

WIDE = {"speedup": Estimate(value=105.0, low=49.0, high=683.0), "verdict": Verdict.FASTER}
SLOWER = {"speedup": Estimate(value=0.31, low=0.14, high=0.55), "verdict": Verdict.SLOWER}
UNCLEAR = {"speedup": Estimate(value=0.994, low=0.97, high=1.02), "verdict": Verdict.INCONCLUSIVE}
CONTROL = Comparison(
    variant="control",
    against="old",
    speedup=Estimate(value=1.01, low=0.994, high=1.025),
    verdict=Verdict.NO_DIFFERENCE,
)
SAID = [
    (WIDE, "faster", "at least 49.0x"),
    (SLOWER, "slower", "at most 0.550x"),
    (UNCLEAR, "", "no difference beyond 4 %"),
]


def compared_run(**values):
    comparisons = [compared(**values)]
    return run(variant("old"), variant("new"), comparisons=comparisons, control=CONTROL, device=CPU)


def faces(report):
    """What each face of a run says, by its name."""
    live = LiveReport(report, LiveDetail())
    past = kept_of(report)
    (case,) = cases_of_command([report], [], lambda name: Required())[1:]
    return {
        "terminal": printed(short_result(report), 100),
        "screen": "\n".join(printed(part, 100) for part in outcome(report, report.comparisons)),
        "bars": printed(panel_view(TIMES, live, width=80, height=5), 80),
        "digits": printed(panel_view(NUMBER, live, width=80, height=20), 80),
        "log": "\n".join(verdict_lines(report)),
        "page": unescape(re.sub(r"<[^>]+>", " ", report.render("html"))),
        "markdown": report.render("md"),
        "junit": case.message,
        "history": last_run(past),
        "line": repr(report),
        "answer": answer(report).short,
        "json": json.loads(to_json(report))["comparisons"][0]["shown"]["words"],
    }


@pytest.mark.parametrize(("values", "direction", "bound"), SAID)
def test_every_face_of_a_run_says_it(values, direction, bound):
    for face, text in faces(compared_run(**values)).items():
        assert bound in text, face
        assert direction in text.lower(), face


@pytest.mark.parametrize(("values", "direction", "bound"), SAID)
def test_every_face_of_a_comparison_of_two_sides_says_it(values, direction, bound):
    words = ", ".join(filter(None, (direction, bound)))
    ratio = {"ratio": values["speedup"], **values}
    del ratio["speedup"]
    time = Estimate(value=1e-3)
    row = Row(variant="step", a=time, b=time, pairing=Pairing.PAIRED, **ratio)
    sides = {"a": Side(name="A"), "b": Side(name="B")}
    each = ScenarioComparison(scenario="s", rows=[row], **sides)
    report = ComparisonReport(before="A", after="B", comparisons=[each])
    assert words in printed(comparison_view(report), 100)
    assert words in comparison_markdown(report)
    rows = json.loads(to_json(report))["comparisons"][0]["rows"]
    assert words in rows[0]["shown"]["words"]


def test_a_threshold_that_is_reached_stands_beside_the_same_verdict():
    reached = replace(compared_run(**WIDE), fail_below=2.0, exit_code=ExitCode.MEASURED)
    text = printed(short_result(reached), 100)
    assert "passed: the interval of new begins at 49.0x (required: 2.00x)" in text
    assert "inconclusive" not in text


def test_the_control_is_no_difference_wherever_it_stands():
    for face, text in faces(compared_run(**WIDE)).items():
        assert "inconclusive" not in text, face
    (row,) = (
        line
        for line in printed(comparison_table(compared_run(**WIDE)), 100).splitlines()
        if line.startswith("control")
    )
    assert row.split() == ["control", "1.010x", "0.994", "to", "1.025", "no", "difference"]


@pytest.mark.parametrize("name", NAMES)
def test_no_recording_says_inconclusive_of_its_control_nor_verified_of_what_is(name, tmp_path):
    report = report_of(name, tmp_path)
    control = report.control
    if (
        control is not None
        and control.speedup
        and control.speedup.ends[0] <= 1 <= control.speedup.ends[1]
    ):
        assert control.verdict in (Verdict.NO_DIFFERENCE, Verdict.INVALID)
    for entry in report.comparisons:
        if entry.verdict == Verdict.INCONCLUSIVE:
            assert entry.trust is None or entry.trust.grade is None


def test_a_smoke_run_says_that_it_runs_and_whether_outputs_agree():
    def checked(state):
        check = Check(kind=CheckKind.OUTPUTS, state=state)
        blank = compared(speedup=None, verdict=Verdict.INCONCLUSIVE)
        entry = replace(blank, trust=Trust(checks=[check]))
        smoke = run(variant("old"), variant("new"), comparisons=[entry], smoke=True)
        said = [
            repr(smoke),
            printed(short_result(smoke), 100),
        ]
        return [*said, answer(smoke).short]

    for text in checked(CheckState.PASSED):
        assert "runs, outputs agree" in text
        assert not re.search(r"inconclusive|verdict \n|disturbed|nothing is compared", text)
    for text in checked(CheckState.NOT_RUN):
        assert "runs, outputs not compared" in text


def test_one_variant_alone_has_its_time_and_no_words_of_comparisons():
    alone = run(variant("only"), control=CONTROL)
    assert answer(alone).short == "1.00 ms"
    text = printed(short_result(alone), 100)
    assert re.search(r"^only +1.00 ms +±1.0% *$", text, re.MULTILINE)
    assert not re.search(r"MEASURED|baseline|speedup|verdict|control", text)


def test_a_row_has_the_ratio_to_the_baseline_and_another_is_named(tmp_path):
    """`random_order` was compared with `coalesced` alone: 0.15x beside 2.51 and 2.69 ms."""
    report = report_of("older/coalescing", tmp_path)
    lines = printed(comparison_table(report), 100).splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("random_order"))
    assert report.comparison("random_order").against == report.baseline
    times = [report.variant(name).time_s.value for name in (report.baseline, "random_order")]
    shown = float(re.search(r"([\d.]+)x", lines[place])[1])
    assert shown == pytest.approx(times[0] / times[1], rel=0.05)
    assert lines[place + 1].startswith("  vs coalesced")
    live = LiveReport(report, LiveDetail())
    bars = printed(panel_view(TIMES, live, width=100, height=20), 100)
    (bar,) = (line for line in bars.splitlines() if line.startswith("random_order"))
    assert f"{shown:.3f}x" in bar
