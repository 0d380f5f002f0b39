"""What every rule declares, and what rules do together."""

from collections import Counter
from pathlib import Path

import pytest
from cases import PAIRS

from gpulab.features.findings.record import records
from gpulab.features.findings.report import RULES

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
