"""Two runs side by side: what differs between them comes first, and the lines of their files that
do come last.
"""

import pytest
from msgspec.structs import replace
from recorded import report_of

from gpulab.features.compare.analysis import SavedRun
from gpulab.features.compare.page import compare_view

FIRST = "import torch\n\n\ndef a(lab):\n    return 1\n\n\ndef b(lab):\n    return 2\n"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return report_of("precision-h200", tmp_path_factory.mktemp("runs"))


def shown(first, second, sources=("", ""), width=100, **options):
    both = [
        SavedRun(report=report, values={}, source=source)
        for report, source in zip((first, second), sources, strict=True)
    ]
    return compare_view(*both, width=width, **options)


def rows(*arguments, **options):
    return shown(*arguments, **options).plain.split("\n")


def below(text, heading):
    place = next(place for place, row in enumerate(text) if f" {heading}" in row)
    return text[place + 1 :]


def changed(report):
    return replace(report, source_sha256="cd" * 32)


def test_what_differs_comes_first_and_what_does_not_is_one_entry(report):
    other = replace(report, params={"n": 4096}, environment={**report.environment, "torch": "9.9"})
    text = rows(report, other)
    assert text[1].split()[0] == "torch"
    assert text[2].split() == ["parameters", "n=8192", "n=4096"]
    assert text[3].startswith("the same")
    assert "device NVIDIA H200" in text[3]
    assert not any("lines that differ" in row for row in text), "the files are the same"


def test_of_many_parameters_those_that_differ_are_shown(report):
    first = replace(report, params={"batch": 8, "n": 1, "dtype": "fp16"})
    second = replace(report, params={"batch": 8, "n": 2})
    assert rows(first, second)[1].split() == ["parameters", "n=1", "dtype=fp16", "n=2"]


def test_the_lines_that_differ_have_their_numbers(report):
    second = FIRST.replace("return 1", "return 3").replace(
        "import torch\n", "import torch\nimport numpy\n"
    )
    text = below(rows(report, changed(report), (FIRST, second)), "the lines that differ")
    assert text == ["    2 + import numpy", "    5 -     return 1", "    6 +     return 3"]


def test_of_many_lines_the_first_are_shown_until_all_are_asked_for(report):
    second = FIRST + "".join(f"x = {number}\n" for number in range(30))
    text = below(rows(report, changed(report), (FIRST, second)), "the lines that differ")
    assert text[:12] == [f"{10 + number:5} + x = {number}" for number in range(12)]
    assert text[12:] == ["      … 18 more, d shows them"]
    text = below(
        rows(report, changed(report), (FIRST, second), all_lines=True), "the lines that differ"
    )
    assert text == [f"{10 + number:5} + x = {number}" for number in range(30)]


def test_files_of_any_size_are_compared(report):
    """To match lines of such files would take minutes: all between the first change and the last
    are said to differ.
    """
    first = "".join(f"x = {number % 7}\n" for number in range(40_000))
    second = first.replace("x = 3\n", "x = 4\n")
    text = below(
        rows(report, changed(report), (first, second), all_lines=True), "the lines that differ"
    )
    assert text[0] == "    4 - x = 3"
    assert text[-1].endswith(" more")
    assert len(text) == 1001


def test_a_run_file_without_its_source_says_so(report):
    for sources, whose in ((("", FIRST), "A"), ((FIRST, ""), "B"), (("", ""), "A and B")):
        text = below(rows(report, changed(report), sources), "the lines that differ")
        assert text == [f"The run file of {whose} holds no source."]


def test_hostile_lines_stay_lines(report):
    second = FIRST + "x = '\x1b[31m\u202e\x0c'\n\tif x:\n"
    page = shown(report, changed(report), (FIRST, second), width=60)
    text = below(page.plain.split("\n"), "the lines that differ")
    assert [row[:9].split() for row in text] == [["10", "+", "x"], ["11", "+"]]
    assert not {"\x1b", "\u202e"} & set(page.plain)


@pytest.mark.parametrize("width", [60, 79, 119])
def test_nothing_is_wider_than_the_screen_and_sentences_are_whole(report, width):
    second = FIRST.replace("return 1", "return " + "1 + " * 100)
    text = rows(report, changed(report), (FIRST, second), width=width)
    assert max(map(len, text)) <= width
    assert "a small change of a time means nothing." in " ".join(" ".join(text).split())
    assert text[-1].endswith("…")
