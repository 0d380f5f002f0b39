"""The fold: the same events give the same state, however they were batched, cut, or looked at
meanwhile.
"""

import msgspec
import pytest
from found import finding
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import run_file
from synthetic_runs import END, INFOS, opening, report_of, request, run_of, samples

from gpulab.core import events as e
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import FailureKind, Stage
from gpulab.features.goodput.events import Phases
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured
from gpulab.report.build import build_report, fold_all, new_state

RECORDED = [
    "cancelled",
    "fixes",
    "phases",
    "standin-lost",
    "standin-shared",
    pytest.param("h100/small_kernels", marks=pytest.mark.slow),
]


@pytest.fixture(params=RECORDED)
def recorded(request, tmp_path):
    return read_run_file(run_file(request.param, tmp_path)).events


@settings(max_examples=30)
@given(st.integers(1, 400))
def test_batching_changes_nothing(size):
    whole, cut = report_of(run_of({"b": 0.5})), report_of(run_of({"b": 0.5}, size=size))
    assert cut.comparisons == whole.comparisons
    assert cut.control == whole.control
    assert [variant.time_s for variant in cut.variants] == [
        variant.time_s for variant in whole.variants
    ]
    assert (cut.method, cut.method.rounds) == (whole.method, 100)


def test_a_report_of_a_cut_run_does_not_end_it(recorded):
    middle = len(recorded) // 2
    state = fold_all(recorded[:middle])
    live = build_report(state, live=True)
    assert build_report(state).outcome == "interrupted"
    assert build_report(state, live=True) == live
    for event in recorded[middle:]:
        state.fold(event)
    assert build_report(state) == report_of(recorded)


def test_reports_while_a_run_goes_on_change_nothing_and_stay_as_they_were(recorded):
    state, reports, texts = new_state(), [], []
    for event in recorded:
        state.fold(event)
        reports.append(build_report(state, live=True))
        texts.append(msgspec.json.encode(reports[-1]))
    assert build_report(state) == report_of(recorded)
    assert [msgspec.json.encode(report) for report in reports] == texts


def test_events_of_a_variant_that_was_not_asked_for_change_no_other():
    failed = e.VariantFailed(
        variant="x", kind=FailureKind.ERROR, stage=Stage.BUILD, cause=finding("text", text="boom")
    )
    strangers = [
        e.Built(variant="x", build_s=1.0, first_step_s=1.0, items=3.0),
        e.Checked(variant="x", ok=False),
    ]
    plain = report_of(run_of({"b": 0.5}))
    assert report_of(run_of({"b": 0.5}, later=strangers)) == plain
    report = report_of(run_of({"b": 0.5}, later=[failed]))
    assert (report.exit_code, report.variants, report.comparisons) == (
        3,
        plain.variants,
        plain.comparisons,
    )


def test_a_second_build_of_the_baseline_counts_its_items():
    """The control has no build of its own in the events: it does what the baseline does."""
    report = report_of([*opening(items=4.0), *samples({"b": 0.5}), *END])
    assert report.control.speedup.value == pytest.approx(1, abs=0.01)
    assert report.variant("a").time_s.value == pytest.approx(1e-3, rel=0.01)
    assert report.variant("a").items == 4.0


def test_figures_of_blocks_are_means_over_them():
    timed = [
        msgspec.structs.replace(
            event, sm_mhz=[1500.0 + 100.0 * (index % 2) for index in range(len(event.epoch))]
        )
        for event in samples({}, faults=3)
    ]
    variant = report_of([*opening(), *timed, *END]).variant("a")
    assert variant.sm_mhz == pytest.approx(1550.0)
    assert (variant.faults_per_block, variant.switches_per_block) == (3.0, 0.0)
    assert report_of(run_of({})).variant("a").sm_mhz is None
    assert report_of(opening()).variant("a").faults_per_block is None


def test_phases_of_several_windows_are_added():
    windows = [
        Phases(variant="a", steps=2, seconds={"": 1.0, name: 2.0}, running_s={"": 0.5})
        for name in "xy"
    ]
    phases = fold_all([*opening(), *windows]).variants["a"].last(Phases)
    assert (phases.steps, phases.seconds, phases.running_s) == (
        4,
        {"": 2.0, "x": 2.0, "y": 2.0},
        {"": 1.0},
    )


def test_the_last_value_of_a_figure_counts():
    values = [
        e.Reported(variant=variant, name="loss", value=value)
        for variant, value in (("a", 3.0), ("a", 1.0))
    ]
    report = report_of(
        run_of({}, later=[*values, e.Reported(variant=None, name="loss", value=None)])
    )
    assert [(figure.variant, figure.name, figure.value) for figure in report.figures] == [
        ("a", "loss", 1.0),
        (None, "loss", None),
    ]


def ceilings(best, *roofs, **fields):
    measured = tuple(Ceiling(roof=roof, kind="", unit="", best=best, median=best) for roof in roofs)
    return CeilingsMeasured(ceilings=measured, at="", **fields)


def best_by_roof(state):
    return {ceiling.roof: ceiling.best for ceiling in state.last(CeilingsMeasured).ceilings}


def test_ceilings_of_an_earlier_run_stand_in_for_those_still_to_be_measured():
    earlier = ceilings(1.0, "device memory", "matrix", "link", cached=True, cache_bytes=5)
    state = fold_all([*opening(), earlier, ceilings(2.0, "device memory")])
    assert best_by_roof(state) == {"device memory": 2.0, "matrix": 1.0, "link": 1.0}
    assert (state.last(CeilingsMeasured).cached, state.last(CeilingsMeasured).cache_bytes) == (
        False,
        5,
    )
    state.fold(ceilings(3.0, "device memory", "matrix", cache_bytes=6))
    assert best_by_roof(state) == {"device memory": 3.0, "matrix": 3.0, "link": 1.0}
    assert state.last(CeilingsMeasured).cache_bytes == 6
    last = ceilings(4.0, "device memory", "matrix", "launch")
    state.fold(last)
    assert state.last(CeilingsMeasured) == last


def test_an_event_after_the_end_changes_only_the_clock():
    events = run_of({"b": 0.5})
    state = fold_all(events)
    before = build_report(state)
    state.fold(e.WorkerDone(sent=3, t=200.0))
    assert msgspec.structs.replace(build_report(state), progress=before.progress) == before


def test_the_request_gives_the_variants_their_first_status():
    missing = finding("no_gpu", need="cuda")
    infos = (*INFOS, msgspec.structs.replace(INFOS[1], name="c", missing=missing))
    unchecked = msgspec.structs.replace(INFOS[1], name="d", unchecked="random")
    state = fold_all(opening(request(*infos, unchecked))[:1])
    assert {name: variant.status for name, variant in state.variants.items()} == {
        "a": "pending",
        "b": "pending",
        "c": "skipped",
        "d": "pending",
    }
    assert state.variants["c"].reason == missing
    assert state.variants["d"].unchecked == finding("declared_unchecked", "d", reason="random")
