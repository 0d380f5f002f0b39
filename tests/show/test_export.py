"""A run as a page and as Markdown: whole, small, and safe whatever the texts of its run file are."""

import re
from html.parser import HTMLParser

import pytest
from hostile import EACH_RECORDING, FORGED, hostile
from markdown_it import MarkdownIt
from msgspec.structs import replace
from recorded import recorded_path, report_of, run_file, write_run

from gpulab.core.events import RunStarted
from gpulab.core.readable import readable
from gpulab.core.run_file import read_run_file
from gpulab.core.text import plain
from gpulab.headless.scripting import load
from gpulab.session.saved import recordings
from gpulab.show.display import rendered
from gpulab.show.figures import figures_of
from gpulab.show.markdown import document
from gpulab.show.page import page

LARGEST = 100_000
"""Bytes of a page."""
_EMPTY = {"meta", "br"}
_ATTRIBUTES = {
    *("class", "charset", "name", "content", "lang", "scope", "data-n", "open", "http-equiv"),
    *("xmlns", "viewbox", "width", "height", "role", "x", "y", "d", "cx", "cy", "r", "text-anchor"),
}
MARKUP = '"></style></svg></td><script>alert(1)</script><img src=x onerror=alert(1)>'
"""Would end whatever it stands in."""


class Strict(HTMLParser):
    """Tags close in their order; of attributes there are only those that can ask for nothing."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        names = {name for name, _ in attributes}
        assert names <= _ATTRIBUTES, (tag, attributes)
        self.tags.add(tag)
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in _EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


def forged(report):
    """The same with markup in every text."""
    return readable(hostile(report, text=f"\x1b[31m\u202e\ud800{FORGED}{MARKUP}\n"))


@EACH_RECORDING
def test_a_page_shows_texts_as_texts_and_asks_for_nothing(recorded, tmp_path):
    report = report_of(recorded, tmp_path)
    for each in (report, forged(report)):
        text = page(replace(each, run_file=report.run_file))
        read = Strict(text)
        assert text == plain(text)
        assert not read.tags & {"script", "img", "link", "iframe", "object", "base", "a"}
        style = text.partition("<style>")[2].partition("</style>")[0]
        assert not re.search(r"url\(|@import|@font-face", style)
    assert FORGED in "".join(read.texts)


def test_a_lesson_with_markup_in_title_text_code_and_parameters_shows_it(tmp_path):
    """Its source is text too: a docstring with tags, an image, a link that is a script."""
    start, *events = read_run_file(recorded_path("lesson-batched_matmul")).events
    assert isinstance(start, RunStarted)
    subject = start.request.job.subject
    docstring = f"Title.\n\n<script>1</script> ![x](http://x/y.png) [y](javascript:1) {MARKUP}\n"
    subject = replace(
        subject,
        title="<script>alert(1)</script>",
        source=subject.source.replace('"""', f"'''{docstring}'''\n\"\"\"", 1).replace(
            "products =", f"# {MARKUP}\n    products ="
        ),
        params={"batch": MARKUP},
        claim=MARKUP,
    )
    request = replace(start.request, job=replace(start.request.job, subject=subject))
    path = tmp_path / "run.jsonl"
    write_run(path, [replace(start, request=request), *events])
    report = load(path)
    text = report.render("html")
    read = Strict(text)
    assert "<script>alert(1)</script>" in read.texts
    assert not read.tags & {"script", "img", "a"}
    assert "".join(read.texts).count("onerror=alert(1)") >= 4
    assert_nothing_but_text(report.render("md"))


def assert_nothing_but_text(markdown):
    """Of HTML only the comment that keeps a name from being a mention."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    inner = [token for each in tokens for token in (each, *(each.children or []))]
    assert not {token.type for token in inner} & {"html_block", "image", "link_open"}
    html = {token.content for token in inner if token.type == "html_inline"}
    assert html <= {"<!-- -->"}


@EACH_RECORDING
def test_markdown_of_hostile_runs_is_whole(recorded, tmp_path):
    report = report_of(recorded, tmp_path)
    record = replace(forged(report), run_file=report.run_file)
    assert_nothing_but_text(document(record))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.parent.name == "h200"))
        for path in recordings()
    ],
    ids=lambda path: path.name,
)
def test_the_page_of_a_normal_run_is_small(path):
    text = load(path).render("html")
    assert len(text.encode()) <= LARGEST
    assert text.count("<table>") >= 2


def test_the_page_shows_the_roofline_and_the_parts_as_a_terminal_does(tmp_path):
    report = report_of("lesson-batched_matmul", tmp_path)
    texts = "".join(Strict(page(report)).texts)
    for figure in figures_of(report):
        assert figure.title in texts
    for words in ("FLOP/byte", "where the time goes", "of a step"):
        assert words in texts


def test_without_its_file_a_run_still_has_a_page_which_says_what_is_missing(tmp_path):
    path = run_file("lesson-batched_matmul", tmp_path)
    report = load(path)
    whole = report.render("html")
    path.unlink()
    text = report.render("html")
    assert "lesson-batched_matmul.jsonl: No such file" in text
    assert "5.83x faster" in text
    assert len(text) < len(whole)


def test_forms_by_name(tmp_path):
    report = report_of("function", tmp_path)
    assert "train:step" in report.render("text")
    assert report.render("md").startswith("# ")
    with pytest.raises(ValueError, match=r"'pdf': write one of html, md, text"):
        rendered(report, "pdf")
