"""Every question is answered, by what was measured or by what is missing."""

import io

import pytest
from recorded import report_of
from rich.console import Console

from gpulab.features.findings.checklist import Said, checklist
from gpulab.features.findings.checklist_view import checklists
from gpulab.features.findings.libraries import libraries
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
                    assert answer.numbers or answer.text or answer.finding, question.text


@pytest.mark.parametrize("run", RUNS)
def test_it_fits_into_eighty_columns(load, run):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(checklists(load(run)))
    text = console.export_text()
    assert "profiling checklist" in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_was_planted_is_answered_with_its_finding(load):
    report = load("findings/on_cpu")
    answers = checklist(Step(report, report.variant("data_wait")))["profiling checklist"]
    said = {question.text: answer for question, answer in answers}
    assert said["Does it wait for data?"].said == Said.YES
    assert said["Does it wait for data?"].finding == "data_wait"
    assert said["Do loaders' workers fall behind?"].said == Said.NO


def test_the_libraries_are_named_whose_kernels_run(load):
    def shares(run, variant):
        report = load(run)
        return libraries(Step(report, report.variant(variant)))

    assert "CUTLASS" in shares("h200/double_buffering", "queued")
    assert "cuBLAS" in shares("h200/precision", "bf16")
    assert "PyTorch" in shares("h200/layernorm_gelu", "eager")
    assert "Triton" in shares("h200/layernorm_gelu", "compiled")
    assert "its own kernels" in shares("h200/coalescing", "stride_8")
    assert "MKL (torch's BLAS)" in shares("findings/on_cpu", "not_fused_twin")
