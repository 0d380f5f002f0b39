"""Every question is answered, by what was measured or by what is missing."""

import pytest
from conftest import printed
from recorded import report_of

from gpulab.features.findings.checklist import Said, checklist
from gpulab.features.findings.checklist_view import checklists
from gpulab.features.findings.step import Step

RUNS = ("h200/sync_every_step", "findings/on_gpu", "findings/on_cpu", "smoke", "healthy")


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    return lambda run: report_of(run, folder)


@pytest.mark.parametrize("run", RUNS)
def test_an_answer_has_a_number_or_says_what_is_missing(load, run):
    report = load(run)
    for variant in report.variants:
        for answers in checklist(Step(report, variant)).values():
            for question, answer in answers:
                if answer.said == Said.UNKNOWN:
                    assert answer.missing is not None, question.text
                else:
                    assert answer.missing is None, question.text
                    assert answer.numbers or answer.finding, question.text


@pytest.mark.parametrize("run", RUNS)
def test_it_fits_into_eighty_columns(load, run):
    text = printed(checklists(load(run)), 80)
    assert "waiting" in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_was_planted_is_answered_with_its_finding(load):
    report = load("findings/on_cpu")
    answers = checklist(Step(report, report.variant("data_wait")))["waiting"]
    said = {question.text: answer for question, answer in answers}
    assert said["Does it wait for data?"].said == Said.YES
    assert said["Does it wait for data?"].finding == "data_wait"


@pytest.mark.parametrize(
    ("run", "variant", "section", "text"),
    [
        ("findings/on_cpu", "data_wait", "waiting", "Does it wait for data?"),
        ("h200/coalescing", "stride_32", "memory", "Are accesses not coalesced?"),
        ("h200/layernorm_gelu", "eager", "memory", "Pointwise operations not fused?"),
    ],
)
def test_no_is_said_only_with_a_number_on_its_side(load, run, variant, section, text):
    report = load(run)
    step = Step(report, report.variant(variant))
    (answer,) = [each for question, each in checklist(step)[section] if question.text == text]
    assert answer.said != Said.NO


def test_of_a_cpu_nothing_is_asked_that_only_a_gpu_has(load):
    report = load("findings/on_cpu")
    asked = {
        question.text
        for answers in checklist(Step(report, report.variants[0])).values()
        for question, _ in answers
    }
    assert "Bank conflicts?" not in asked
    assert "Is the device busy?" in asked
