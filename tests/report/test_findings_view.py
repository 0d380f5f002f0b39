"""Findings as lines: variants of which the same is true share one, and every place and need is
said.
"""

import pytest
from found import finding

from gpulab.report.sentences import lines, sentence, sentence_with_place, with_reason


def test_several_variants_of_one_code_are_one_line_that_names_them():
    shares = {"waits": 0.476, "hardly": 0.12}
    findings = [finding("off_the_cpu", name, share=share) for name, share in shares.items()]
    assert lines(findings) == [
        "off the CPU for a part of the time (contention on a busy machine, or steps that wait): waits 48%, "
        "hardly 12%"
    ]
    assert lines(findings[:1]) == [
        "waits: off the CPU for 48% of the time (contention on a busy machine, or a step that waits)"
    ]


def test_identical_sentences_share_a_line():
    gaps = [finding("gaps_in_device_time", name) for name in ("first", "second", "third")]
    (line,) = lines(gaps)
    assert line.startswith("first, second, third: its device time includes gaps between launches")
    reasons = [
        finding("no_effect", "a", reason="it is small"),
        finding("no_effect", "b", reason="it is hidden"),
    ]
    assert lines([*reasons, finding("no_effect", "c", reason="it is small")]) == [
        "a, c: no effect here: it is small",
        "b: no effect here: it is hidden",
    ]


def test_groups_come_in_the_order_of_their_first_finding():
    findings = [
        finding("warm_up_drifts", "a", drift=0.04),
        finding("plain_functions"),
        finding("warm_up_drifts", "b", drift=-0.08),
    ]
    assert [line.partition(":")[0] for line in lines(findings)] == [
        "still drifting when the warm-up ended",
        "plain functions",
    ]
    assert lines(findings)[0].endswith("a by 4.0%, b by -8.0%")


def test_a_finding_of_the_run_is_never_grouped_with_one_of_a_variant():
    assert lines([finding("cancelled"), finding("cancelled", "a")]) == [
        "stopped by the user",
        "a: stopped by the user",
    ]


def test_different_problems_of_one_code_are_lines_of_their_own():
    assert lines([finding("xid", xid=31), finding("xid", xid=79)]) == [
        "the driver reported Xid 31: details in the kernel log (dmesg)",
        "the driver reported Xid 79: details in the kernel log (dmesg)",
    ]


@pytest.mark.parametrize(
    ("variant", "values", "place"),
    [
        ("bad", {"stage": "check", "line": 13}, " (bad, check, line 13)"),
        (None, {"stage": "load", "line": None}, " (load)"),
        ("bad", {}, ""),
    ],
)
def test_a_failure_ends_with_its_place(variant, values, place):
    failure = finding("exception", variant, message="ValueError: boom", **values)
    assert sentence_with_place(failure) == f"ValueError: boom{place}"


def test_a_need_and_other_inputs_stand_before_the_sentence():
    assert (
        sentence(finding("no_gpu", need="cuda")) == "needs cuda: no NVIDIA device in this machine"
    )
    elements = finding("elements_differ", differ=3, elements=9, other_inputs=True)
    assert sentence(elements) == "with other values in the inputs: 3 of 9 elements differ"


def test_a_cause_that_is_a_finding_becomes_its_sentence_once():
    skipped = finding(
        "baseline_skipped",
        cause="not_installed",
        need="cupy",
        package="CuPy",
        install="gpulab[cuda13]",
    )
    assert sentence(skipped) == (
        "the baseline was skipped, so nothing was measured: needs cupy: CuPy is not installed: "
        "pip install 'gpulab[cuda13]'"
    )
    ended = finding(
        "profiling_ended", "v", cause="crashed", signal="SIGSEGV", meaning="Segmentation fault"
    )
    assert lines([ended]) == [
        "v: profiling failed: the worker crashed: SIGSEGV (Segmentation fault)"
    ]


def test_text_of_a_scenario_is_never_taken_for_a_code():
    assert sentence(finding("skipped_by_variant", reason="timeout")) == "timeout"
    assert sentence(finding("declared_unchecked", reason="killed")) == "unchecked: killed"
    baseline = finding("baseline_skipped", cause="skipped_by_variant", reason="timeout")
    assert sentence(baseline).endswith(": timeout")


def test_a_code_of_another_gpulab_is_shown_with_its_values():
    later = finding("something_of_later", "v", share=0.5, names=["a", "b"])
    assert sentence(later) == "something of later, share 0.5, names ['a', 'b']"
    assert lines([later]) == [f"v: {sentence(later)}"]


def test_a_message_may_have_a_reason():
    assert with_reason("no", None) == "no"
    assert with_reason("cuda is not available here (cpu is)", finding("no_gpu")) == (
        "cuda is not available here (cpu is): no NVIDIA device in this machine"
    )
