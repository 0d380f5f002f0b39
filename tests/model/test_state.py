"""The fold: the same events give the same state, however they were batched or cut."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.model import events as e
from gpulab.model import wire
from gpulab.model.ceilings import Ceiling
from gpulab.model.conclude import combine, run_result
from gpulab.model.request import Device, RunRequest, VariantInfo
from gpulab.model.state import RunState, fold, fold_all

NAMES = ("a", "control", "b")


def request(**changes):
    infos = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
    return RunRequest(**{"scenario": "s", "path": "s.py", "source_sha256": "0", "variants": infos, **changes})


def opening(**changes):
    built = {"build_s": 0.1, "first_step_s": 0.1, "items": 2.0}
    return [
        e.RunStarted(request=request(**changes), at="", host="h", t=0.0),
        e.WorkerReady(pid=1, device=Device(kind="cpu", name="c"), environment={}, t=0.05),
        e.Built(variant="a", t=0.1, **built),
        e.Built(variant="b", t=0.2, **built),
        e.Planned(rounds=5, epochs=20, floor=0.01, dear=False, t=0.3),
    ]


def rows(ratios, n=20, rounds=5, seed=0):
    draw = random.Random(seed)
    for epoch in range(n):
        for number in range(rounds):
            for index, name in enumerate(NAMES):
                yield epoch, number, index, 1e-3 * ratios.get(name, 1.0) * draw.uniform(0.999, 1.001)


def batches(found, size, complete_last=None):
    found = list(found)
    for start in range(0, len(found), size):
        part = found[start : start + size]
        n = len(part)
        yield e.Samples(
            names=NAMES,
            complete=part[-1][0] if start + size < len(found) or complete_last is None else complete_last,
            epoch=[row[0] for row in part],
            round=[row[1] for row in part],
            variant=[row[2] for row in part],
            times_s=[row[3] for row in part],
            cpu_s=[row[3] * 0.9 for row in part],
            faults=[1] * n,
            switches=[0] * n,
            t=1.0,
        )


END = [e.Stopped(reason="width", t=2.0), e.RunEnded(outcome="done", t=3.0)]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 400))
def test_batching_changes_nothing(size):
    whole = fold_all([*opening(), *batches(rows({"b": 0.5}), 10_000), *END])
    cut = fold_all([*opening(), *batches(rows({"b": 0.5}), size), *END])
    assert cut.comparisons() == whole.comparisons()
    assert run_result(cut).variants[1].time_s == run_result(whole).variants[1].time_s
    assert cut.rounds == 100


def test_a_finished_run():
    found = run_result(fold_all([*opening(), *batches(rows({"b": 0.5}), 37), *END]))
    assert (found.exit_code, found.outcome) == (0, "measured")
    assert found.comparisons[0].verdict == "faster"
    assert found.comparisons[0].speedup == pytest.approx(2, rel=1e-3)
    assert found.control.verdict == "same"
    assert found.method.epochs == 20
    assert found.method.rounds == 100
    assert found.variants[0].contention == pytest.approx(0.1)
    assert found.variants[0].time_s.median == pytest.approx(1e-3, rel=1e-2)


def test_a_broken_control_takes_every_verdict_back():
    found = run_result(fold_all([*opening(), *batches(rows({"b": 0.5, "control": 1.1}), 50), *END]))
    assert found.exit_code == 7
    assert found.control.verdict == "slower"
    assert [(one.verdict, one.speedup) for one in found.comparisons] == [("invalid", None)]


@pytest.mark.parametrize("kind", ["cancelled", "timeout"])
@pytest.mark.parametrize("at", ["a", "b", None])
def test_an_interrupted_run_keeps_its_completed_epochs(kind, at):
    stopped = e.VariantFailed(variant=at, kind=kind, stage="measure", message="stopped", t=1.9)
    cut = [*batches(rows({"b": 0.5}, n=9), 10_000), stopped, e.RunEnded(outcome=kind, t=2.0)]
    found = run_result(fold_all([*opening(), *cut]))
    assert found.exit_code == {"cancelled": 130, "timeout": 3}[kind]
    assert found.comparisons[0].verdict == "faster"
    assert found.control.verdict == "same"


def test_a_baseline_that_crashes_late_keeps_the_pairs_of_the_others():
    failed = e.VariantFailed(variant="a", kind="crash", stage="measure", message="boom", t=1.9)
    found = run_result(fold_all([*opening(), *batches(rows({"b": 0.5}), 50), failed, e.RunEnded(outcome="failed")]))
    assert found.exit_code == 3
    assert found.variants[0].status == "failed"
    assert found.comparisons[0].verdict == "faster"


@pytest.mark.parametrize("variant", ["a", "b"])
def test_a_wrong_or_refused_variant_has_that_verdict_and_no_speedup(variant):
    wrong = e.Checked(variant=variant, when="after", ok=False, reason="zeros", t=1.9)
    found = run_result(fold_all([*opening(), *batches(rows({"b": 0.5}), 50), wrong, *END]))
    assert found.exit_code == 4
    if variant == "a":
        assert found.comparisons == []
        return
    assert (found.comparisons[0].verdict, found.comparisons[0].reason) == ("wrong", "zeros")
    assert found.comparisons[0].speedup is None


def test_a_file_without_its_end_is_an_interrupted_run():
    found = run_result(fold_all([*opening(), *batches(rows({"b": 0.5}, n=9), 10_000)]))
    assert (found.outcome, found.exit_code) == ("interrupted", 130)
    assert "has no end" in found.reason
    assert found.comparisons[0].verdict == "faster"
    assert {one.status for one in found.variants} == {"ok"}


def test_a_failed_variant_has_no_verdict_and_the_others_keep_theirs():
    failed = e.VariantFailed(variant="b", kind="crash", stage="measure", message="boom", line=3, t=1.5)
    found = run_result(fold_all([*opening(), *batches(rows({}), 50), failed, e.RunEnded(outcome="failed", t=2.0)]))
    assert found.exit_code == 3
    assert found.comparisons == []
    assert (found.variants[1].status, found.variants[1].line) == ("failed", 3)
    assert found.control.verdict == "same"


def test_a_ladder_compares_with_the_rung_below_too():
    infos = tuple(VariantInfo(name=name, against="a" if name != "a" else None) for name in "abc")
    ladder = request(variants=infos, ladder=True)
    assert ladder.pairs({"a", "b", "c"}) == [("control", "a"), ("b", "a"), ("c", "a"), ("c", "b")]
    assert ladder.pairs({"a", "c"}) == [("control", "a"), ("c", "a")]
    assert ladder.pairs({"b", "c"}) == []


def test_a_demanded_speedup():
    state = fold_all([*opening(), *batches(rows({"b": 0.5}), 50), *END])
    assert run_result(state, fail_below=1.5).exit_code == 0
    assert run_result(state, fail_below=2.5).exit_code == 5
    assert run_result(state, fail_below=2.0).exit_code == 6


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0], 0), ([0, 6, 5], 5), ([5, 7], 7), ([4, 7], 4), ([3, 4], 3), ([130, 2], 130), ([], 0)],
)
def test_of_several_exit_codes_the_first_in_order_counts(codes, expected):
    result = run_result(RunState())
    runs = [type(result)(scenario="x", exit_code=code) for code in codes]
    assert combine(runs, {}).exit_code == expected


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_prefix_of_a_run_is_a_state_with_a_result(data):
    whole = [*opening(), *batches(rows({"b": 0.5}), 60), *END]
    state = RunState()
    for event in whole[: data.draw(st.integers(0, len(whole)))]:
        state = fold(state, event)
    found = run_result(state)
    assert all(one.low <= one.speedup <= one.high for one in found.comparisons if one.speedup is not None)


def test_while_ceilings_are_measured_those_of_an_earlier_run_stand_in_for_what_is_still_to_come():
    def told(best, *names, **more):
        found = [Ceiling(roof=roof, kind="", unit="", best=best, median=best) for roof in names]
        return e.CeilingsMeasured(ceilings=tuple(found), at="", **more)

    known = told(1.0, "device memory", "matrix", "link", cached=True, cache_bytes=5)
    state = fold_all([*opening(), known, told(2.0, "device memory")])
    assert {one.roof: one.best for one in state.ceilings.ceilings} == {"device memory": 2.0, "matrix": 1.0, "link": 1.0}
    assert (state.ceilings.cached, state.ceilings.cache_bytes) == (False, 5)
    state = fold(state, told(3.0, "device memory", "matrix", cache_bytes=6))
    assert {one.roof: one.best for one in state.ceilings.ceilings} == {"device memory": 3.0, "matrix": 3.0, "link": 1.0}
    last = told(4.0, "device memory", "matrix", "launch")
    assert fold(state, last).ceilings == last


def test_encoding_and_decoding_give_the_event_back():
    for event in [*opening(), *batches(rows({}), 100), *END]:
        assert wire.decode(wire.encode(event).rstrip(b"\n")) == event


def test_an_unknown_type_is_none_and_a_broken_known_one_is_an_error():
    assert wire.decode(b'{"type":"FromTheFuture","t":1.0}') is None
    for broken in (b"garbage", b'{"type":"Stopped"', b'{"type":"Stopped","t":1}', b'{"t":1.0}', b"\xff\xfe", b"[]"):
        with pytest.raises(ValueError, match=r"event|Stopped"):
            wire.decode(broken)


def test_what_is_not_a_number_is_null():
    assert b'"value":null' in wire.encode(e.Reported(variant=None, name="x", value=float("nan")))
