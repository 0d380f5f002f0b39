"""What every rule declares, and what rules do together."""

from collections import Counter
from pathlib import Path

import pytest
from cases import PAIRS
from msgspec.structs import replace
from recorded import report_of

from gpulab.core.payloads import LineTime
from gpulab.features.findings.record import records
from gpulab.features.findings.report import RULES, advice_of
from gpulab.report.report import RankReport

LESSONS = {path.stem for path in (Path(__file__).parents[2] / "scenarios").glob("*.py")}


def test_every_rule_has_a_number_and_a_code_of_its_own():
    assert sorted(rule.number for rule in RULES) == list(range(1, len(RULES) + 1))
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_to_change_where_it_is_taught_and_where_its_thresholds_are_from(rule):
    assert rule.lesson in LESSONS
    assert rule.change
    assert len(rule.code) == 3
    assert all(line and len(line) <= 74 for line in rule.code)
    assert rule.thresholds
    assert all(threshold.source for threshold in rule.thresholds.values())


def test_the_record_has_every_rule_and_every_pair():
    kept = records()
    assert [each.code for each in kept] == [
        rule.name for rule in sorted(RULES, key=lambda rule: rule.number)
    ]
    planted = Counter(pair.code for pair in PAIRS)
    assert {each.code: each.planted for each in kept if each.planted} == planted
    assert [each.code for each in kept if each.right < each.planted or each.wrong] == []


@pytest.mark.parametrize(("ranks", "lesson"), [(0, "input_pipeline"), (2, "gradient_buckets")])
def test_who_waits_for_other_ranks_is_told_to_send_less_and_earlier(tmp_path, ranks, lesson):
    report = report_of("findings/on_cpu", tmp_path)
    line = LineTime(
        line="x.py:7", function="step", source="dist.all_reduce(bucket)", running=0.0, waiting=0.6
    )
    variant = report.variants[0]
    partition = {"useful": 0.4, "waiting": 0.6}
    goodput = replace(variant.goodput, partition=partition, lines=[line])
    others = [RankReport(rank=rank, time_s=0.1) for rank in range(ranks)]
    advice, _ = advice_of(report, replace(variant, goodput=goodput, ranks=others))
    waits = next(each for each in advice if each.finding.code == "waits_in_line")
    assert waits.lesson == lesson
