"""The form of the lessons that ship: `gpulab --guide scenario` describes it."""

import re

import pytest

from gpulab.catalog.catalog import catalog
from gpulab.draw.ascii import to_ascii
from gpulab.features.course.report import course_lesson

LESSONS = {entry.name: entry for entry in catalog() if entry.scenario is not None}
WIDEST, LINES, WORDS = 72, range(5, 11), 25
_DRAWING = re.compile(r"```text\n(.*?)```\n", re.DOTALL)
_CODE = re.compile(r"(?m)^    .*\n?|^```.*?^```$", re.DOTALL)


def prose(lesson):
    """The sentences below the headings, without tables, drawings and formulas."""
    text = _CODE.sub("", _DRAWING.sub("", lesson))
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "- "))]
    paragraphs = "\n".join(lines).split("\n\n")
    sentences = [re.split(r"(?<=[.:?!])\s+", " ".join(each.split())) for each in paragraphs]
    return [each for of_paragraph in sentences for each in of_paragraph if each]


@pytest.fixture(params=LESSONS)
def entry(request):
    return LESSONS[request.param]


def test_a_lesson_begins_with_what_to_remember_and_a_drawing(entry):
    lesson = entry.row.lesson
    assert re.match(r"[^\n]+\n\n\*\*In short:\*\* [^\n]+(\n[^\n]+)?\.\n\n```text\n", lesson)
    (drawing,) = _DRAWING.findall(lesson)
    lines = drawing.splitlines()
    assert len(lines) in LINES
    assert max(map(len, lines)) <= WIDEST
    assert to_ascii(drawing).isascii()
    assert [len(line) for line in to_ascii(drawing).splitlines()] == [len(line) for line in lines]


def test_its_table_has_a_row_for_each_variant(entry):
    rows = re.findall(r"^\| `(\w+)` +\|", entry.row.lesson, re.MULTILINE)
    assert rows == list(entry.scenario.variants)


def test_its_parts_have_headings_and_short_sentences(entry):
    assert len(re.findall(r"^## ", entry.row.lesson, re.MULTILINE)) in range(2, 6)
    words = [len(sentence.split()) for sentence in prose(entry.row.lesson)]
    assert sum(words) / len(words) <= WORDS


def test_it_has_questions_and_is_found_by_other_words_than_its_own(entry):
    assert len(course_lesson(entry.name).questions) >= 3
    assert entry.scenario.terms
