"""The form of a lesson: one sentence, one drawing, a table of all variants, a few short parts."""

import re
from pathlib import Path

import pytest

from gpulab.catalog.reader import read_text
from gpulab.draw.ascii import to_ascii

FILES = sorted((Path(__file__).parents[2] / "scenarios").glob("*.py"))
TEXTS = {file.stem: read_text(file.read_text()) for file in FILES}
IN_FORM = [name for name, text in TEXTS.items() if "**In short:**" in text.lesson]
MOST_WORDS = 280
MOST_WORDS_OF_A_SENTENCE = 25
FENCED = re.compile(r"^```text\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \|(.+)\|(.+)\|(.+)\|$", re.MULTILINE)


def sentences(lesson):
    """Its prose: no drawing, table, heading or formula."""
    prose = FENCED.sub("", lesson)
    parts = re.split(r"^(?:\||#|    ).*$|\n\n", prose, flags=re.MULTILINE)
    return [sentence for part in parts for sentence in re.split(r"(?<=[.:?])\s", part) if sentence]


@pytest.mark.parametrize("name", IN_FORM)
def test_a_lesson_has_its_parts_in_order(name):
    lesson = TEXTS[name].lesson
    places = [
        lesson.index("**In short:**"),
        FENCED.search(lesson).start(),
        lesson.index("| variant | what changes | expected"),
        lesson.index("\n## "),
    ]
    assert places == sorted(places)
    assert 2 <= lesson.count("\n## ") <= 4
    rows = ROW.findall(lesson)
    assert [row[0] for row in rows] == list(TEXTS[name].scenario.variants)
    assert all(cell.strip() for row in rows for cell in row)


@pytest.mark.parametrize("name", IN_FORM)
def test_a_drawing_fits_and_has_an_ascii_form(name):
    (drawing,) = FENCED.findall(TEXTS[name].lesson)
    lines = drawing.split("\n")
    assert 6 <= len(lines) <= 10
    assert max(map(len, lines)) <= 72
    assert "?" not in to_ascii(drawing)


@pytest.mark.parametrize("name", IN_FORM)
def test_a_lesson_is_short_and_in_short_sentences(name):
    words = [len(sentence.split()) for sentence in sentences(TEXTS[name].lesson)]
    assert sum(words) <= MOST_WORDS
    assert sum(words) / len(words) <= MOST_WORDS_OF_A_SENTENCE
