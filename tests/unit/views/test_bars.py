"""Bars of letters: as long as they should be, in proportion, and explained by a legend that has every letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.protocol.partition import CATEGORIES
from gpulab.views import bars

weights = st.floats(0.01, 1)


def shares_of(names, parts):
    return {name: part / sum(parts) for name, part in zip(names, parts, strict=True)}


@given(st.lists(weights, min_size=len(CATEGORIES), max_size=len(CATEGORIES)))
def test_a_bar_is_always_as_long_and_in_proportion(parts):
    shares = shares_of(CATEGORIES, parts)
    text = bars.bar(bars.categories(shares.items())).plain
    assert len(text) == bars.CELLS
    for letter, name in (("u", "useful"), ("d", "data wait"), ("l", "launch-bound")):
        assert abs(text.count(letter) - bars.CELLS * shares[name]) <= 1


@given(st.lists(st.text(max_size=8), min_size=1, max_size=12, unique=True), st.data())
def test_the_letters_of_a_bar_are_those_of_its_legend(names, data):
    parts = data.draw(st.lists(weights, min_size=len(names), max_size=len(names)))
    drawn = bars.phases(shares_of(names, parts).items())
    text = bars.bar(drawn)
    assert len(text.plain) == bars.CELLS
    shown = {part.letter for part in drawn if part.letter in text.plain}
    assert set(text.plain) == shown
    by_letter = dict(entry.split(" ", 1) for entry in bars.legend([(text, drawn)]).split(", ") if " " in entry)
    assert shown <= set(by_letter)


def test_the_letters_of_a_partition_are_those_of_its_legend_in_the_order_of_the_bar():
    drawn = bars.categories(dict.fromkeys(CATEGORIES, 0.1).items())
    text = bars.bar(drawn)
    entries = bars.legend([(text, drawn)]).split(", ")
    letters = list(dict.fromkeys(text.plain))
    assert letters == list("ubncadsl.p")
    assert [entry[0] for entry in entries if entry[1] == " "] == letters
    assert "d data wait" in entries


def test_a_part_too_small_for_a_cell_has_no_place_in_the_legend():
    drawn = bars.categories({"useful": 0.999, "sync": 0.001}.items())
    assert bars.legend([(bars.bar(drawn), drawn)]) == "u useful"


def test_a_phase_of_the_authors_own_has_a_capital_of_its_name():
    parts = bars.phases({"update": 0.25, "useful": 0.25, "upload": 0.25, "": 0.25}.items())
    assert {part.words: part.letter for part in parts} == {
        "useful": "u",
        "unmarked": ".",
        "update": "U",
        "upload": "P",
    }


@pytest.mark.parametrize(("name", "letter"), [("1234", "A"), ("\x1b[31m", "M"), ("表面", "A")])
def test_a_name_without_a_letter_has_the_first_that_is_free(name, letter):
    assert bars.bar(bars.phases({name: 1.0}.items())).plain == letter * bars.CELLS


@given(st.lists(st.text(max_size=3), min_size=1, max_size=36, unique=True))
def test_no_two_phases_share_a_letter(names):
    letters = [part.letter for part in bars.phases(shares_of(names, [1.0] * len(names)).items())]
    assert len(set(letters)) == len(letters)


def test_phases_without_a_free_letter_of_their_own_take_another_then_digits_then_a_question_mark():
    names = ["a", "aa", "表面", "1", *(f"{'abc' * number}" for number in range(1, 36))]
    letters = [part.letter for part in bars.phases(dict.fromkeys(names, 1 / len(names)).items())]
    assert letters[:5] == list("ABCDE")
    assert "".join(letters) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789???"


@pytest.mark.parametrize("name", [category for category in CATEGORIES if category != "useful"])
def test_a_phase_called_as_a_category_of_the_lab_is_still_the_authors(name):
    (own,) = [part for part in bars.phases({name: 0.5, "useful": 0.5}.items()) if part.words == name]
    assert own.letter.isupper() or name == "sync"  # sync is a phase of the lab's too
