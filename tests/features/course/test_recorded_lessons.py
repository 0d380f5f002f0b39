"""Lessons recorded on H100s and H200s: their results can be shown, and the course's questions have answers
there.
"""

import re

import pytest
from msgspec.structs import replace
from recorded import ALL, run_file
from reports import variant_report

from gpulab.core.statuses import Conclusion, Status
from gpulab.features.course.report import PLACE, course_lesson
from gpulab.features.course.view import answer
from gpulab.headless.scripting import load

WHOLE = sorted(name for name in ALL if name.startswith(("h100/", "h200/")))
CUT_OFF = {"h200/jax_jit"}
EARLIER = {"h100/small_kernels"}
"""Of a lesson that has another variant now."""
BRIEF = {"h200/utilization"}
"""Alone for a second, over which the driver averages its utilization: none was read."""
ONE_PROCESS = {"h200/compile_modes", "h200/matmul_epilogue"}
NOT_MEASURED = "Not measured here:"


def recorded_in(folder, name):
    return load(run_file(name, folder))


@pytest.mark.parametrize("name", WHOLE)
def test_its_questions_have_answers_and_what_is_missing_is_said(tmp_path, name):
    recorded = recorded_in(tmp_path, name)
    assert_answered(recorded, whole=name not in CUT_OFF | EARLIER | ONE_PROCESS | BRIEF)
    assert_missing_is_said(recorded)


def assert_answered(recorded, whole):
    """Quick runs have no profile, and those of one process no speedup: of a whole run every value
    is there.

    But of what does not run there: int8 on a CPU on an H200, NVSHMEM's memory by default.
    """
    questions = course_lesson(recorded.scenario).questions
    answers = [answer(question.answer, recorded) for question in questions]
    assert all(PLACE.search(filled) is None for filled in answers)
    partly = [filled for filled in answers if NOT_MEASURED in filled]
    if whole and not recorded.quick and recorded.exit_code == 0:
        assert [filled for filled in partly if f"{NOT_MEASURED} int8 (skipped" not in filled] == []
    else:
        assert len(partly) < len(answers)


def assert_missing_is_said(recorded):
    """Once; of every question every value alone, and all of them at once."""
    stopped = replace(recorded, outcome=Conclusion.INTERRUPTED, comparisons=[], figures=[])
    bare = [variant_report(name=variant.name, status=Status.OK) for variant in recorded.variants]
    nothing = replace(recorded, variants=bare, comparisons=[], figures=[])
    nowhere = replace(nothing, variants=[])
    for question in course_lesson(recorded.scenario).questions:
        for report in (stopped, nothing, nowhere, *_without_one_variant(recorded)):
            filled = answer(question.answer, report)
            assert PLACE.search(filled) is None
            assert not re.search(r"n/a|None|  | \.( |$)| \(\)", filled)
            missing = {
                place["variant"]
                for place in PLACE.finditer(question.answer)
                if place["variant"] not in {variant.name for variant in report.variants}
            }
            notes = re.findall(rf"{NOT_MEASURED} .*?\.(?= |$)", filled)
            assert len(notes) <= 1
            assert all(re.search(rf"\b{name}\b", notes[0]) for name in missing)
        assert NOT_MEASURED in answer(question.answer, nowhere)


def _without_one_variant(report):
    for variant in report.variants:
        yield replace(
            report,
            variants=[other for other in report.variants if other is not variant],
            figures=[figure for figure in report.figures if figure.variant != variant.name],
        )
