"""When a run has measured enough, by what its processes hand over."""

import random
from math import log

import pytest
from msgspec.structs import replace

from gpulab.core.jobs import Measure, ScenarioFile, VariantInfo
from gpulab.engine.measure.process_result import CandidateFacts, ProcessResult
from gpulab.engine.measure.stop_rule import StopRule
from gpulab.scenario import CONTROL

NAMES = ("old", "new", CONTROL)
FACTS = [
    CandidateFacts(name=name, variant="old", items=1.0, steps=1, step_s=1e-3, lead_in=2, kept=False)
    for name in NAMES
]
SUBJECT = ScenarioFile(
    scenario="x",
    path="",
    source_sha256="",
    variants=(VariantInfo(name="old", against=None), VariantInfo(name="new", against="old")),
)


def stopped(speedup, spread, *, most=64, process_s=0.5, **options):
    """(why a run of such processes stops, after how many of them)."""
    rule, draw = StopRule(Measure(subject=SUBJECT, **options)), random.Random(1)
    for number in range(1, most + 1):
        ratio, control = (draw.gauss(0.0, spread) for _ in range(2))
        pairs = {("new", "old"): ratio - log(speedup), (CONTROL, "old"): control}
        values = [(key, [[value] * 5]) for key, value in pairs.items()]
        reason = rule.reason(
            ProcessResult(candidates=FACTS, values=values, measured_s=process_s), process_s
        )
        if reason is not None:
            return reason, number
    return None, most


def test_narrow_intervals_end_a_run_from_eight_processes_on():
    assert stopped(1.2, 1e-4) == ("width", 8)
    assert stopped(1.2, 0.1) == ("time", 20)  # of half a second each


@pytest.mark.parametrize("required", [1.1, 1.5])
def test_what_is_required_ends_a_run_once_it_is_known_to_be_reached_or_not(required):
    assert stopped(1.3, 0.02, required_speedup=required) == ("settled", 8)


def test_a_run_that_asked_for_nothing_ends_once_each_effect_is_known_within_a_tenth():
    assert stopped(40.0, 0.1, brief=True) == ("decided", 8)
    assert stopped(4.0, 0.2, brief=True) == ("decided", 16)  # by then within a quarter
    assert stopped(1.2, 0.1, brief=True) == ("time", 20)
    assert stopped(40.0, 0.1) == ("time", 20)


def test_a_control_that_shows_an_effect_decides_nothing():
    rule = StopRule(Measure(subject=SUBJECT, brief=True))
    pairs = {("new", "old"): -3.0, (CONTROL, "old"): 0.02}
    values = [(key, [[value] * 5]) for key, value in pairs.items()]
    reasons = [
        rule.reason(ProcessResult(candidates=FACTS, values=values, measured_s=0.1), 0.1)
        for _ in range(8)
    ]
    assert reasons == [None] * 7 + ["width"]


def test_the_fastest_is_profiled_beside_the_baseline():
    infos = (*SUBJECT.variants, VariantInfo(name="third", against="old"))
    rule = StopRule(Measure(subject=replace(SUBJECT, variants=infos)))
    assert rule.extremes() == {"old", "new", "third"}
    values = [(("new", "old"), [[-0.5] * 5]), (("third", "old"), [[-0.7] * 5])]
    rule.add(ProcessResult(candidates=FACTS, values=values), 0.1)
    assert rule.extremes() == {"old", "third"}


BRIEF = [replace(FACTS[0], name=name, variant=name) for name in ("old", "new", "third")]


def order_of_firsts(processes, *, alone=lambda first, process: {}, slower=0.0):
    """The variants that are built first in processes whose rounds say 1.6x and 2x; alone they take
    the same.

    `alone` gives other seconds for the variants of a process; `slower`: of the baseline after the
    rounds, in all processes or in each.
    """
    slower_by_process = slower if isinstance(slower, list) else [slower] * processes
    infos = (*SUBJECT.variants, VariantInfo(name="third", against="old"))
    rule = StopRule(Measure(subject=replace(SUBJECT, variants=infos), alone=True))
    values = [(("new", "old"), [[log(0.625)] * 5]), (("third", "old"), [[log(0.5)] * 5])]
    firsts, told = ["old"], []
    for process in range(processes):
        seconds = {"old": 1.0, "new": 0.625, "third": 0.5} | alone(firsts[-1], process)
        known = {"old", "third", firsts[-1]} if process else {"old"}
        result = ProcessResult(
            candidates=BRIEF,
            values=values,
            first=firsts[-1],
            alone_s={name: seconds[name] for name in known},
            slower=slower_by_process[process] if firsts[-1] == "old" else None,
        )
        rule.add(result, 0.1)
        told.append(rule.to_time_alone(result))
        firsts.append(told[-1][0])
    return firsts, told


def test_variants_take_turns_at_being_the_first_and_the_fastest_is_timed_alone_five_times():
    firsts, told = order_of_firsts(8)
    assert firsts == ["old", "third", "new", "third", "old", "third", "old", "third", "old"]
    assert [sorted(names) for names in told[:5]] == [
        ["old", "third"],
        ["new", "old", "third"],
        *[["old", "third"]] * 3,
    ]
    assert told[5] == ["old"]


@pytest.mark.parametrize("suspect", ["third", "new"])
def test_a_variant_that_differs_alone_is_the_first_until_that_is_sure(suspect):
    firsts, _ = order_of_firsts(
        8, alone=lambda first, process: {suspect: 2.0} if first == suspect else {}
    )
    assert firsts.count(suspect) >= 4
    assert order_of_firsts(8, slower=0.5)[0][:4] == ["old"] * 4


def test_what_seems_to_differ_alone_keeps_a_run_from_ending():
    rule = StopRule(Measure(subject=SUBJECT, alone=True))
    values = [(("new", "old"), [[-1.0] * 5]), ((CONTROL, "old"), [[0.0] * 5])]
    first = ProcessResult(
        candidates=FACTS,
        values=values,
        measured_s=0.5,
        first="new",
        alone_s={"old": 1.0, "new": 1.0},
    )
    later = replace(first, first=None, alone_s={})
    reasons = [rule.reason(result, 0.5) for result in [first, *[later] * 8]]
    assert reasons == [None] * 9
    assert [rule.reason(first, 0.5) for _ in range(3)] == [None, None, "width"]


def test_a_smoke_run_has_one_process():
    assert stopped(1.2, 0.1, smoke=True) == ("epochs", 1)


def test_a_run_whose_baseline_is_lost_has_failed():
    lost = ProcessResult(candidates=FACTS, baseline_lost=True)
    assert StopRule(Measure(subject=SUBJECT)).reason(lost, 0.1) == "failed"
    assert StopRule(Measure(subject=SUBJECT)).reason(ProcessResult(), 0.1) == "failed"


def test_a_run_ends_where_no_variant_is_left_to_compare_with_the_baseline():
    rule = StopRule(Measure(subject=SUBJECT))
    left = [facts for facts in FACTS if facts.name != "new"]
    assert rule.reason(ProcessResult(candidates=FACTS, values=[]), 0.1) is None
    assert rule.reason(ProcessResult(candidates=left, values=[]), 0.1) == "failed"
    alone = Measure(subject=replace(SUBJECT, variants=SUBJECT.variants[:1]))
    assert StopRule(alone).reason(ProcessResult(candidates=left, values=[]), 0.1) is None
    infos = (*SUBJECT.variants[:1], VariantInfo(name="scale", against=None))
    for_scale = Measure(subject=replace(SUBJECT, variants=infos))
    assert StopRule(for_scale).reason(ProcessResult(candidates=left, values=[]), 0.1) is None


def test_it_goes_on_beyond_its_time_where_it_takes_that_long_to_have_enough_processes():
    reason, processes = stopped(1.2, 0.1, process_s=0.9, time_s=10.0)
    assert (reason, processes) == ("time", 15)  # 1.3 times the time
    assert stopped(1.2, 0.1, process_s=3.0, time_s=10.0) == ("time", 8)
