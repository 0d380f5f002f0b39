"""What telemetry does to times: pairs of windows with and without it, from events made up for
it.
"""

import random
from math import exp, log

import pytest

from gpulab.core.events import Samples, Stopped, TelemetrySwitched
from gpulab.features.observer_effect.report import log_ratios, ratio_interval


def samples(spans, names=("v",)):
    """Blocks of one step each: (end, time of the step) or (end, time, index of the variant)."""
    count = len(spans)
    columns = dict.fromkeys(("epoch", "faults", "switches"), [0] * count)
    ended, times_s = [span[0] for span in spans], [span[1] for span in spans]
    variant = [span[2] if len(span) > 2 else 0 for span in spans]
    options = {
        "round": [*range(count)],
        "times_s": times_s,
        "cpu_s": times_s,
        "ended": ended,
        "steps": [1] * count,
    }
    return Samples(names=names, variant=variant, complete=1, **columns, **options)


def switched(*states):
    """A switch a second."""
    return [TelemetrySwitched(on=on, t=float(second)) for second, on in enumerate(states)]


def test_a_pair_is_time_on_over_time_off_in_either_order():
    events = [
        *switched(True, False, False, True, True),
        samples([(0.5, 0.2), (1.5, 0.1), (2.5, 0.1), (3.5, 0.4)]),
    ]
    assert log_ratios(events) == pytest.approx([log(2), log(4)])
    assert log_ratios(
        [Stopped(reason="width", t=9.0), *reversed(events[5:]), *events[:5]]
    ) == log_ratios(events)


def test_blocks_that_touch_a_switch_do_not_count():
    spans = [(0.24, 0.2), (0.5, 0.1), (1.05, 0.1), (1.5, 0.1), (2.05, 0.1)]
    # The first begins before the sampler has settled, the third and the last reach over a switch.
    assert log_ratios([*switched(True, False, True), samples(spans)]) == pytest.approx([0.0])
    assert log_ratios([*switched(True, False, True), samples([spans[0], *spans[2:]])]) == []


def test_variants_of_different_length_are_compared_with_themselves():
    spans = [(0.5, 0.2, 0), (0.9, 0.01, 1), (1.5, 0.1, 0), (1.9, 0.005, 1)]
    assert log_ratios([*switched(True, False, True), samples(spans, ("a", "b"))]) == pytest.approx(
        [log(2)]
    )


def test_two_windows_alike_and_a_window_without_a_block_are_no_pair():
    spans = [(0.5, 0.1), (1.5, 0.1), (2.5, 0.1)]
    assert log_ratios([*switched(True, True, False, True, False), samples(spans)]) == []
    assert log_ratios([samples(spans)]) == []
    assert log_ratios([]) == []


def test_the_interval_is_of_ratios_and_needs_eight_pairs():
    assert ratio_interval([0.0] * 7) is None
    interval = ratio_interval(
        [log(ratio) for ratio in (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9)]
    )
    assert (interval.median, interval.low, interval.high, interval.n) == pytest.approx(
        (1.5, 1.1, 1.9, 9)
    )


@pytest.mark.parametrize("slowdown", [0.0, 0.03])
def test_an_effect_is_found_although_the_machine_drifts(slowdown):
    rng, switches, spans, on = random.Random(1), [], [], True
    for number in range(2000):  # a block every 10 ms, a window every half second
        t = number * 0.01
        if number % 50 == 0:
            on = rng.random() < 0.5 if number % 100 == 0 else not on
            switches.append(TelemetrySwitched(on=on, t=t))
        drift = 1 + 0.2 * number / 2000
        spans.append((t + 0.005, 0.004 * drift * (1 + slowdown * on) * rng.gauss(1, 0.005)))
    ratios = log_ratios([*switches, samples(spans)])
    interval = ratio_interval(ratios)
    assert len(ratios) == len(switches) // 2 - 1 + len(switches) % 2
    assert interval.low - 0.004 <= 1 + slowdown <= interval.high + 0.004
    assert interval.high - interval.low < 0.02
    assert log(interval.median) == pytest.approx(sorted(ratios)[len(ratios) // 2], abs=exp(-4))
