"""What every rule declares, and what rules do together."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from recorded import ALL, report_of

from gpulab.features.findings.report import RULES, advice_of
from gpulab.features.goodput.events import LineTime
from gpulab.report.sentences import sentence

SHIPPED = [name for name in ALL if name.startswith(("h100/", "h200/"))]
LESSONS = {path.stem for path in (Path(__file__).parents[3] / "scenarios").glob("*.py")}


def test_every_rule_has_a_code_of_its_own():
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_to_change_where_it_is_taught_and_where_its_thresholds_are_from(rule):
    assert rule.lesson in LESSONS
    assert rule.change
    assert len(rule.code) == 3
    assert all(line and len(line) <= 74 for line in rule.code)
    assert rule.thresholds
    assert all(threshold.source for threshold in rule.thresholds.values())


@pytest.fixture
def judged(tmp_path):
    """By code, what is said of a variant of the run on a CPU with a recording that is changed."""
    report = report_of("findings/on_cpu", tmp_path)

    def of(name, *, facts=None, **goodput):
        variant = report.variant(name)
        recorded = variant.goodput
        known = replace(recorded.facts, **facts or {})
        goodput = replace(recorded, facts=known, **goodput)
        advice, _ = advice_of(report, variant.with_parts(goodput=goodput))
        return {each.finding.code: each for each in advice}

    return of


@pytest.mark.parametrize(
    "unlike",
    [
        {"optimizers": {"AdamW": 1.0, "SGD": 1.0}},
        {"optimizers": {"AdamW": 2.0}},
        {"optimizers": {"SparseAdam": 1.0}},
        {"optimizers": {"AdamW": 1.0}, "optimizer_computes": True},
    ],
    ids=["two classes", "two of a class", "has no flag", "calls a closure"],
)
def test_an_optimizer_is_judged_only_by_kernels_of_its_own(judged, unlike):
    code = "optimizer_not_fused"
    assert code in judged(code, facts={"optimizers": {"AdamW": 1.0}})
    assert code not in judged(code, facts=unlike)


def test_an_optimizer_is_not_judged_where_its_thread_hardly_ran(judged):
    code = "optimizer_not_fused"
    parts = {"useful": 0.3, "not running": 0.7}
    assert code not in judged(code, partition=parts, repeated=parts)


def test_workers_are_named_and_none_is_promised_to_help(judged):
    known = judged("data_wait", facts={"workers": 2})["data_wait"]
    assert "2 worker processes" in sentence(known.finding)
    assert "num_workers=" not in "".join(known.code)


def test_a_finding_is_said_where_both_recordings_hold_it(judged):
    other = {"useful": 1.0, "data wait": 0.0}
    assert "data_wait" in judged("data_wait")
    assert "data_wait" not in judged("data_wait", repeated=other)


def test_what_is_compiled_is_not_told_to_compile(judged):
    code = "many_small_operations"
    assert code in judged(code)
    assert code not in judged(code, facts={"compiled_regions": 1.0})


def test_a_line_that_waits_is_said_with_its_share(judged):
    line = LineTime(
        line="x.py:7", function="step", source="dist.all_reduce(bucket)", running=0.0, waiting=0.6
    )
    parts = {"useful": 0.4, "waiting": 0.6}
    waits = judged("data_wait", partition=parts, repeated=parts, lines=[line])
    assert waits["waits_in_line"].share == pytest.approx(0.6)
    assert "x.py:7" in sentence(waits["waits_in_line"].finding)


_FACTOR = re.compile(r"(?:bound|up to|at most|gain\w*)\D{0,30}?(\d+(?:\.\d+)?)x")


@pytest.mark.parametrize("name", SHIPPED)
def test_no_factor_of_a_finding_is_beaten_by_a_variant_of_its_own_table(tmp_path, name):
    report = report_of(name, tmp_path)
    times = [each.time_s.value for each in report.variants if each.time_s]
    for variant in report.variants:
        for advice in variant.advice:
            text = f"{sentence(advice.finding)}; {advice.change}"
            promised = [float(factor) for factor in _FACTOR.findall(text)]
            assert all(factor >= variant.time_s.value / min(times) for factor in promised), text
            assert 0 < advice.share <= 1
