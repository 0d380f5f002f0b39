"""The lines of `--observer-effect`."""

from gpulab.core.finding import finding
from gpulab.features.observer_effect.view import effect_line, judgement
from gpulab.report.commands import ObserverEffect
from gpulab.report.sentences import sentence

SMALL = ObserverEffect(scenario="mine", ratio=1.00012, low=0.9901, high=1.0049, pairs=40)
LARGE = ObserverEffect(scenario="mine", ratio=1.03, low=1.02, high=1.04, pairs=8)
NO_INTERVAL = ObserverEffect(scenario="mine", pairs=3)


def test_the_ratio_stands_with_its_interval_and_its_pairs():
    line = (
        "observer effect of telemetry on mine: time with / without 1.0001 (0.9901 to 1.0049), 40 "
        "pairs of 0.5 s"
    )
    assert effect_line(SMALL, None, 0.5) == line
    assert effect_line(SMALL, finding("no_end"), 0.5) == line


def test_an_effect_is_judged_by_its_interval():
    assert judgement(SMALL) == "inside 1 %"
    assert judgement(LARGE) == "not shown to be inside 1 %"
    assert judgement(NO_INTERVAL) is None


def test_without_an_interval_the_reason_of_the_run_or_what_to_do_is_named():
    start = "mine: 3 pairs, too few for an interval: "
    assert effect_line(NO_INTERVAL, None, 0.5) == f"{start}give it more --time"
    no_end = finding("no_end")
    assert effect_line(NO_INTERVAL, no_end, 0.5) == start + sentence(no_end)
