"""The course against the lessons: each is in it once, and its answers name what a run of that
lesson measures.
"""

import ast
import re
from pathlib import Path

from gpulab.catalog.catalog import read_file
from gpulab.core.statuses import Shows
from gpulab.features.course.report import (
    OF_A_PROFILE,
    OF_A_SOLO_RUN,
    PLACE,
    course,
    variants_asked,
)
from gpulab.features.course.view import FACTS, PARENTHESIS, SENTENCE_END
from gpulab.scenario import FIRST

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FILES = {path.stem: path for path in sorted(SCENARIOS.glob("*.py"))}
OF_COMPARISONS = {"speedup", "below", "sustained", "verdict", "verdict_below"}
OF_CURVES = {"second", "settled", "cost"}
OF_CLOCKS = {"returns", "waits"}
ON_GPU = {"sm", "dram", "busy", "power", "reserved", "hidden", "launches", "device"}
LESSONS = [lesson for stage in course() for lesson in stage.lessons]


def figures_of(path):
    """Patterns of the names that `lab.report(NAME, ...)` is called with in a file: the open parts
    of an f-string match anything.
    """
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "lab.report":
            name = call.args[0]
            parts = name.values if isinstance(name, ast.JoinedStr) else [name]
            yield "".join(
                re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in parts
            )


def test_every_lesson_is_in_the_course_exactly_once():
    assert sorted(lesson.name for lesson in LESSONS) == sorted(FILES)


def test_an_answer_names_what_a_run_of_its_lesson_measures_also_on_a_cpu():
    for lesson in LESSONS:
        scenario = read_file(FILES[lesson.name]).scenario
        assert_answers_are_measured(lesson, scenario)
        if "cuda" not in scenario.needs:
            assert_answers_have_a_value_on_a_cpu(lesson, scenario)


def assert_answers_are_measured(lesson, scenario):
    figures = list(figures_of(FILES[lesson.name]))
    baseline = next(iter(scenario.variants))
    for answer in answers_of(lesson):
        assert PLACE.search(answer), "an answer has at least one measured value"
        assert not set("{}") & set(PLACE.sub("", answer)), answer
        for place in PLACE.finditer(answer):
            assert_measured(place, scenario, figures, baseline)


def answers_of(lesson):
    return [question.answer for question in lesson.questions]


def assert_measured(place, scenario, figures, baseline):
    assert place["variant"] in scenario.variants, place[0]
    if place["figure"] is not None:
        assert any(re.fullmatch(pattern, place["figure"]) for pattern in figures), place[0]
        return
    assert place["fact"] in FACTS, place[0]
    variant, compared = scenario.variants[place["variant"]], place["fact"] in OF_COMPARISONS
    assert not compared or (variant.name != baseline and variant.against is not None), (
        f"{place[0]}: with what?"
    )
    assert not compared or scenario.shows in (Shows.SPEEDUP, Shows.MEMORY), place[0]
    has_another = scenario.ladder or variant.against not in (FIRST, baseline)
    assert "below" not in place["fact"] or has_another, place[0]
    assert place["fact"] not in OF_CURVES or scenario.shows == Shows.CURVE, place[0]
    assert place["fact"] not in OF_CLOCKS or scenario.shows == Shows.CLOCKS, place[0]


def assert_answers_have_a_value_on_a_cpu(lesson, scenario):
    """Where a value is missing its sentence is left out: on a CPU the others stay."""
    on_gpu = {variant.name for variant in scenario.variants.values() if "cuda" in variant.needs}
    for answer in answers_of(lesson):
        measured = [place for place in PLACE.finditer(answer) if place["variant"] not in on_gpu]
        assert any(place["fact"] not in ON_GPU for place in measured), answer
        for sentence in SENTENCE_END.split(PARENTHESIS.sub("", answer)):
            named = {place["variant"] for place in PLACE.finditer(sentence)}
            assert named <= on_gpu or not named & on_gpu, sentence


def test_variants_whose_profile_an_answer_wants_have_one():
    assert FACTS.keys() >= {*OF_A_PROFILE, *OF_A_SOLO_RUN}
    assert variants_asked("utilization") == ["one_block", "full_grid"]
    assert variants_asked("coalescing") == []
    assert variants_asked("of_somebody_else") == []
