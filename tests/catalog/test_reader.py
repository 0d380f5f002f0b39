"""Scenario files are read as text: fast and safe; a wrong one says where, what is wrong, and how to
fix it.
"""

import ast
from pathlib import Path

import pytest

from gpulab.catalog.reader import literal, read_text
from gpulab.catalog.source import UnreadableError

EXAMPLE = (Path(__file__).parent / "example.py").read_text()
HEAD = "from gpulab import MiB, Scenario\n"
VARIANT = "@scenario.variant\ndef a(lab): ...\n"


def test_the_example_of_the_manual_is_read():
    text = read_text(EXAMPLE)
    assert text.lesson.startswith("Pinned memory: page-locked")
    assert text.scenario.params == {"mib": 256}
    assert list(text.scenario.variants) == ["pageable", "pinned"]
    assert (
        text.scenario.variants["pinned"].summary
        == "Page-locked source: the copy engine reads it directly."
    )


def test_arithmetic_on_numbers_and_units_is_a_literal():
    text = (
        HEAD
        + "scenario = Scenario('t', params={'n': 4 * MiB, 'p': 2**20, 'q': -(3 - 1) / 4})\n"
        + VARIANT
    )
    assert read_text(text).scenario.params == {"n": 4 << 20, "p": 1 << 20, "q": -0.5}


def test_cases_are_names_and_parameters():
    text = (
        HEAD
        + "scenario = Scenario('t', params={'n': 8}, cases=('free', 'nan', {'n': 2**10}))\n"
        + VARIANT
    )
    assert read_text(text).scenario.cases == ("free", "nan", {"n": 1024})


BROKEN = {
    "huge power": ("scenario = Scenario('t', params={'n': 9**9**9})\n", 2, "exponent"),
    "syntax": ("scenario = Scenario('t'\n", 2, "never closed"),
    "unknown keyword": ("scenario = Scenario('t',\n  speed=3)\n", 3, "unexpected keyword 'speed'"),
    "repeated keyword": ("scenario = Scenario('t', claim='a', claim='b')\n", 2, "given twice"),
    "no literal": (
        "x = 3\nscenario = Scenario('t', params={'n': x})\n",
        3,
        "params= is not a literal",
    ),
    "star keywords": ("more = {}\nscenario = Scenario('t', **more)\n", 3, "cannot be read"),
    "unknown need": (
        "scenario = Scenario('t', needs=('cuda', 'magic'))\n",
        2,
        "needs='magic' is not one of",
    ),
    "unknown roof": ("scenario = Scenario('t', roof='the sky')\n", 2, "roof='the sky'"),
    "no variants": ("scenario = Scenario('t')\n", 2, "without variants"),
    "two scenarios": ("scenario = Scenario('t')\nother = Scenario('t')\n", 3, "a second Scenario"),
    "smoke of no param": ("scenario = Scenario('t', smoke={'n': 1})\n", 2, "not in params"),
    "called": ("scenario = Scenario('t')\ndef a(lab): ...\nscenario.variant(a)\n", 4, "a call"),
    "twice": (f"scenario = Scenario('t')\n{VARIANT}{VARIANT}", 6, "two variants are called 'a'"),
    "unknown parameter": (
        "scenario = Scenario('t')\n@scenario.variant\ndef a(lab, n): ...\n",
        4,
        "requires 'n'",
    ),
    "no lab": ("scenario = Scenario('t')\n@scenario.variant\ndef a(): ...\n", 4, "takes no lab"),
    "control": (
        "scenario = Scenario('t')\n@scenario.variant\ndef control(lab): ...\n",
        4,
        "second build",
    ),
    "against nothing": (
        f"scenario = Scenario('t')\n{VARIANT}@scenario.variant(against='z')\ndef b(lab): ...\n",
        6,
        "against='z'",
    ),
    "positional": ("scenario = Scenario('t', ('cuda',))\n", 2, "one positional value, the topic"),
    "a scenario without a name": ("box = {}\nbox['s'] = Scenario('t')\n", 3, "no plain name"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_says_where_and_how_to_fix_it(name):
    body, line, message = BROKEN[name]
    with pytest.raises(UnreadableError) as caught:
        read_text(HEAD + body)
    assert caught.value.line == line
    assert message in caught.value.message
    assert caught.value.fix
    assert str(caught.value) == f"line {line}: {caught.value.message}; {caught.value.fix}"


def test_an_unexpected_keyword_is_answered_with_those_there_are():
    with pytest.raises(UnreadableError) as caught:
        read_text(HEAD + "scenario = Scenario('t', speed=3)\n")
    assert caught.value.fix.startswith("it takes needs, params, cpu, smoke, sweep, ")
    assert "no_effect_reason" in caught.value.fix
    with pytest.raises(UnreadableError) as caught:
        read_text(HEAD + "scenario = Scenario('t', parms={})\n")
    assert caught.value.fix.startswith("did you mean params? it takes needs, ")


def test_what_is_no_literal_has_no_value():
    for text in ("f()", "x", "[*y]", "{**y}", "'a' * 3", "1 / 0", "f'{x}'", "f'{1!r}'"):
        with pytest.raises(ValueError):  # noqa: PT011
            literal(ast.parse(text, mode="eval").body)


def test_functions_have_their_summary_and_the_arguments_that_they_require():
    text = read_text(
        "def step(): 'One step.\\n\\nMore.'\n"
        "def other(x, y=2, *, z, w=4): ...\n"
        "def _hidden(): ...\n"
        "class Model: ...\n"
        "alias = step\n"
        "if True:\n    def inner(): ...\n"
    )
    assert text.scenario is None
    assert {
        name: (function.summary, function.required) for name, function in text.functions.items()
    } == {
        "step": ("One step.", ()),
        "other": ("", ("x", "z")),
    }
    assert text.names == {"step": 1, "other": 2, "_hidden": 3, "Model": 4, "alias": 5}


def test_a_variant_has_its_first_paragraph_as_summary():
    text = read_text(
        "from gpulab import Scenario\nscenario = Scenario('t')\n"
        "@scenario.variant\ndef first(lab):\n"
        '    """Read each row\n    from memory.\n\n    More of it."""\n'
    )
    assert text.scenario.variants["first"].summary == "Read each row from memory."
