"""Lessons recorded on an H200: their results can be shown, and the course's questions have answers
there.
"""

import lzma
from pathlib import Path

import pytest
from conftest import printed

from gpulab.features.course.report import course_lesson
from gpulab.features.course.view import PLACE, answer
from gpulab.headless.scripting import load
from gpulab.report.results import result

FOLDER = Path(__file__).parents[1] / "corpus" / "h200"
WHOLE = sorted(path.name.removesuffix(".jsonl.xz") for path in FOLDER.glob("*.xz"))
CUT_OFF = {"jax_jit", "small_kernels", "training_step"}
ONE_PROCESS = {"compile_modes", "matmul_epilogue"}


@pytest.fixture(scope="module", params=WHOLE)
def recorded(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("h200") / f"{request.param}.jsonl"
    path.write_bytes(lzma.decompress((FOLDER / f"{request.param}.jsonl.xz").read_bytes()))
    return load(path)


def test_a_recorded_lesson_is_shown(recorded):
    text = printed(result(recorded), 80)
    assert recorded.scenario in text
    assert "NVIDIA H200" in text
    assert "Traceback" not in text


def test_its_questions_have_answers(recorded):
    """Quick runs have no profile, and those of one process no speedup: of a whole run every value
    is there.

    But of what does not run on an H200: int8 on a CPU.
    """
    answers = [
        (question.answer, answer(question.answer, recorded))
        for question in course_lesson(recorded.scenario).questions
    ]
    assert all(PLACE.search(filled) is None for _, filled in answers)
    if (
        recorded.scenario not in CUT_OFF | ONE_PROCESS
        and not recorded.quick
        and recorded.exit_code == 0
    ):
        assert [filled for _, filled in answers if "n/a" in filled.replace("n/a (int8", "")] == []
    else:
        assert any(
            filled.count("n/a") < len(PLACE.findall(template)) for template, filled in answers
        )
