"""The door that text of others goes through: what comes out of it can be shown, encoded, and read
as it stands.
"""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulab.core.limits import FILE_NAME_BYTES
from gpulab.core.text import cut, file_name, one_line, plain, plain_json

ANYTHING = st.text(st.characters(exclude_categories=()))  # surrogates too
INVISIBLE = "\x1b\x9b\x07\x00\r\x7f\x85\u202e\u2066\u200b\u2028\u2029\ufeff\u00ad\ud800\U000e0041"


def shown(mark):
    return mark.isprintable() or unicodedata.category(mark) == "Zs"


@given(ANYTHING)
@example(INVISIBLE)
def test_plain_text_is_visible_and_can_be_encoded(text):
    assert all(shown(mark) or mark in "\t\n" for mark in plain(text))
    assert plain(text).encode().decode() == plain(text) == plain(plain(text))


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_what_a_reader_sees_stays_as_it_is(text):
    assert plain(text) == text


@pytest.mark.parametrize("mark", INVISIBLE[1:])
def test_what_a_reader_cannot_see_is_marked(mark):
    assert plain(f"a{mark}b") == "a\ufffdb"


@given(ANYTHING)
@example(f"a\n\n{INVISIBLE}\tb")
def test_one_line_is_one(text):
    line = one_line(text)
    assert all(map(shown, line))
    assert len(line.splitlines()) <= 1
    assert line == line.strip()
    assert "  " not in line


@given(st.text(max_size=50), st.integers(0, 60))
def test_what_is_cut_says_how_much_is_missing(text, most):
    shortened = f"{text[:most]}... ({len(text) - most} more characters)"
    assert cut(text, most) == (shortened if len(shortened) < len(text) else text)


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
@example([INVISIBLE.replace("\ud800", ""), "\U000e0041"])
def test_plain_json_is_visible_and_decodes_to_the_same(value):
    data = plain_json(json.dumps(value, ensure_ascii=False).encode())
    assert json.loads(data) == value
    assert all(map(shown, data.decode()))


@given(ANYTHING)
@example("../../x")
@example("é" * 500)
def test_a_file_name_is_one_part_of_a_path(text):
    name = file_name(f"x{text}")
    assert not set(name) & set("/\\\0\n:*?\"<>|$`'; ")
    assert 0 < len(name.encode()) <= FILE_NAME_BYTES
    assert all(map(shown, name))
