"""Pairs measured while the GPU was slowed down or shared are dropped, and no others: by the
readings around them.
"""

import pytest

from gpulab.core.events import RunEnded, RunStarted, Samples
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.statuses import Outcome
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted
from gpulab.report.build import build_report, fold_all
from gpulab.scenario import CONTROL

PERIOD_S, LOOK_S, BLOCK_S, TIME_S = 0.2, 2.0, 0.01, 30.0
NAMES = ("a", "b", CONTROL)
VARIANTS = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
SUBJECT = ScenarioFile(scenario="s", path="s.py", source_sha256="0", variants=VARIANTS)


def rounds():
    """Blocks back to back, three a round: (start, end) of each."""
    count = int(TIME_S / BLOCK_S / 3)
    return [
        [((3 * n + place) * BLOCK_S, (3 * n + place + 1) * BLOCK_S) for place in range(3)]
        for n in range(count)
    ]


def samples(batch, spans, *, complete):
    rows = [
        (number, place, end)
        for number, blocks in enumerate(spans)
        for place, (_, end) in enumerate(blocks)
    ]
    count = len(rows)
    return Samples(
        t=rows[-1][2],
        names=NAMES,
        complete=complete,
        epoch=[batch] * count,
        round=[number for number, _, _ in rows],
        variant=[place for _, place, _ in rows],
        times_s=[BLOCK_S / (2 if place == 1 else 1) for _, place, _ in rows],
        cpu_s=[BLOCK_S] * count,
        faults=[0] * count,
        switches=[0] * count,
        ended=[end for _, _, end in rows],
        steps=[2 if place == 1 else 1 for _, place, _ in rows],
    )


def readings(slowed, shared):
    """Five a second; `slowed` and `shared` are the stretches (from, to) that the readings tell
    of.
    """
    events, looked = [], 0.0
    for number in range(1, int(TIME_S / PERIOD_S) + 20):
        t = number * PERIOD_S
        values = {"reasons": 0x40 if overlap(slowed, t - PERIOD_S, t) else 0}
        if number % int(LOOK_S / PERIOD_S) == 0:
            others = ["python 1"] if shared and shared[0] <= t < shared[1] else []
            values |= {"others": others, "others_since": looked}
            looked = t
        events.append(Telemetry(t=t, since=t - PERIOD_S, values={"sm": 50.0}, **values))
    return events


def overlap(stretch, start, end):
    return bool(stretch) and stretch[0] < end and stretch[1] > start


def report_of(slowed=None, shared=None):
    spans, length = rounds(), 20
    batches = [spans[start : start + length] for start in range(0, len(spans), length)]
    events = [samples(number, batch, complete=number + 1) for number, batch in enumerate(batches)]
    events += readings(slowed, shared)
    request = RunRequest(job=Measure(subject=SUBJECT, time_s=TIME_S), telemetry="0")
    first = [
        RunStarted(t=0.0, request=request, at="", host=""),
        TelemetryStarted(t=0.0, gpu="GPU", uuid="GPU-0"),
    ]
    # As a session would have them: in the order in which they came.
    events = [
        *first,
        *sorted(events, key=lambda event: event.t),
        RunEnded(t=TIME_S + 5, outcome=Outcome.DONE),
    ]
    return build_report(fold_all(events)), spans


def test_where_nothing_disturbs_nothing_is_dropped():
    report, spans = report_of()
    (comparison,) = report.comparisons
    assert (comparison.pairs, comparison.dropped, comparison.verdict) == (len(spans), 0, "faster")
    assert report.findings == []


@pytest.mark.parametrize(
    ("cause", "stretch", "dropped_from", "dropped_to", "code", "verdict"),
    [
        # Between the reading before the slowdown and the one after the last that shows it.
        ("slowed", (5.1, 6.5), 5.0, 6.8, "clocks_slowed", "faster"),
        ("slowed", (5.1, 12.5), 5.0, 12.8, "clocks_slowed", "invalid"),
        # Since the look before, when it was not there; until the one after, when it was gone.
        ("shared", (7.9, 8.3), 6.0, 10.0, "gpu_shared", "faster"),
        ("shared", (7.9, 12.3), 6.0, 14.0, "gpu_shared", "invalid"),
        ("shared", (8.1, 9.9), None, None, None, "faster"),  # nobody looked meanwhile
    ],
)
def test_pairs_that_touch_the_disturbance_are_dropped(
    cause, stretch, dropped_from, dropped_to, code, verdict
):
    report, spans = report_of(**{cause: stretch})
    (comparison,) = report.comparisons
    pairs = [(min(blocks)[0], max(blocks[:2])[1]) for blocks in spans]
    outside = [
        pair
        for pair in pairs
        if dropped_from is None or pair[1] <= dropped_from + 1e-9 or pair[0] >= dropped_to - 1e-9
    ]
    assert (comparison.pairs, comparison.dropped) == (len(outside), len(pairs) - len(outside))
    assert comparison.verdict == verdict
    assert [finding.code for finding in report.findings] == ([code] if code else [])
    if verdict == "invalid":
        assert (report.exit_code, comparison.reason.code, comparison.speedup) == (
            7,
            "pairs_dropped",
            None,
        )
    else:
        assert comparison.speedup.value == pytest.approx(2)


def test_a_gpu_that_is_slowed_down_all_the_time_leaves_nothing_to_believe():
    report, spans = report_of(slowed=(0.0, TIME_S + 10))
    (comparison,) = report.comparisons
    assert (comparison.pairs, comparison.dropped, comparison.verdict) == (0, len(spans), "invalid")
    assert report.control.verdict == "invalid"
    assert all(variant.time_s is None for variant in report.variants)
