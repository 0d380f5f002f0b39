"""Bars of parts: as long as they should be, in proportion, and explained by a legend that has
every letter.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.payloads import CATEGORIES
from gpulab.draw import bars
from gpulab.draw.blocks import styled_words

weights = st.floats(0.01, 1)


def cells_of(text, part):
    """How many cells have its colour, with letters or words in them."""
    return sum(len(words) for words, style in styled_words(text) if part.style in style.split())


def shares_of(names, parts):
    return {name: part / sum(parts) for name, part in zip(names, parts, strict=True)}


@given(st.lists(weights, min_size=len(CATEGORIES), max_size=len(CATEGORIES)))
def test_a_bar_is_always_as_long_and_in_proportion(parts):
    shares = shares_of(CATEGORIES, parts)
    drawn = bars.categories(shares.items())
    text = bars.parts_bar(drawn)
    assert text.cell_len == bars.CELLS
    for part in drawn:
        if part.words in ("useful", "data wait", "launch-bound"):
            assert abs(cells_of(text, part) - bars.CELLS * part.share) <= 1


def test_a_part_has_its_words_inside_where_letters_are_left_beside_them():
    drawn = bars.categories({"useful": 0.6, "copies": 0.3, "sync": 0.1}.items())
    text = bars.parts_bar(drawn, 40)
    assert text.plain == "uuuu computing 60% uuuuuccc 30% ccccssss"
    assert bars.parts_bar(drawn, 40, with_words=False).plain == "u" * 24 + "c" * 12 + "s" * 4
    assert "computing 60%? " in bars.parts_bar(drawn, 40, computing="60%?").plain


@given(st.lists(st.text(max_size=8), min_size=1, max_size=12, unique=True), st.data())
def test_a_bar_of_phases_has_the_letters_of_its_parts(names, data):
    parts = data.draw(st.lists(weights, min_size=len(names), max_size=len(names)))
    (drawn,) = bars.phases([shares_of(names, parts)])
    text = bars.parts_bar(drawn, with_words=False)
    assert len(text.plain) == bars.CELLS
    assert set(text.plain) <= {part.letter for part in drawn}


def test_the_letters_of_a_partition_are_in_the_order_of_the_categories():
    drawn = bars.categories(dict.fromkeys(CATEGORIES, 0.1).items())
    assert list(dict.fromkeys(bars.parts_bar(drawn, with_words=False).plain)) == list(
        "ubncadsl.wop"
    )
    assert [part.words for part in drawn] == list(CATEGORIES)


def test_a_phase_of_the_authors_own_has_a_capital_of_its_name():
    (parts,) = bars.phases([{"update": 0.25, "useful": 0.25, "upload": 0.25, "": 0.25}])
    assert {part.words: part.letter for part in parts} == {
        "useful": "u",
        "unmarked": "-",
        "update": "U",
        "upload": "P",
    }


@pytest.mark.parametrize(("name", "letter"), [("1234", "A"), ("\x1b[31m", "M"), ("表面", "A")])
def test_a_name_without_a_letter_has_the_first_that_is_free(name, letter):
    (parts,) = bars.phases([{name: 1.0}])
    assert bars.parts_bar(parts, with_words=False).plain == letter * bars.CELLS


@given(st.lists(st.text(max_size=3), min_size=1, max_size=36, unique=True))
def test_no_two_phases_share_a_letter(names):
    (parts,) = bars.phases([shares_of(names, [1.0] * len(names))])
    letters = [part.letter for part in parts]
    assert len(set(letters)) == len(letters)


def test_phases_without_a_free_letter_of_their_own_take_another_then_digits_then_a_question_mark():
    names = ["a", "aa", "表面", "1", *(f"{'abc' * number}" for number in range(1, 36))]
    (parts,) = bars.phases([dict.fromkeys(names, 1 / len(names))])
    letters = [part.letter for part in parts]
    assert letters[:5] == list("ABCDE")
    assert "".join(letters) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789???"


@pytest.mark.parametrize("name", [category for category in CATEGORIES if category != "useful"])
def test_a_phase_called_as_a_category_of_the_lab_is_still_the_authors(name):
    (parts,) = bars.phases([{name: 0.5, "useful": 0.5}])
    (own,) = [part for part in parts if part.words == name]
    assert own.letter.isupper() or name == "sync"  # sync is a phase of the lab's too
