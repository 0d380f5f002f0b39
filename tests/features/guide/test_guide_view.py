"""The manual: pages by name in the order of their numbers, as Markdown and filled to a terminal."""

import pytest
from conftest import printed

from gpulab import guide


@pytest.fixture(autouse=True)
def _two_pages(tmp_path, monkeypatch):
    (tmp_path / "20-telemetry.md").write_text("# Telemetry: µ\n\nSampled five times a second.\n")
    (tmp_path / "03-reading-a-verdict.md").write_text(
        "# Reading a verdict\n\n- **faster**: the *whole* interval\n"
    )
    (tmp_path / "notes.txt").write_text("no page")
    monkeypatch.setattr(guide, "_FOLDER", tmp_path)


def test_pages_have_their_titles_in_the_order_in_which_they_are_read():
    assert list(guide.pages().items()) == [
        ("reading-a-verdict", "Reading a verdict"),
        ("telemetry", "Telemetry: µ"),
    ]


def test_a_page_is_given_as_it_was_written():
    assert guide.page_text("telemetry") == "# Telemetry: µ\n\nSampled five times a second.\n"


def test_a_page_is_filled_to_the_width_of_a_terminal():
    text = printed(guide.page("reading-a-verdict"), 40)
    assert "faster: the whole interval" in text
    assert "**" not in text
    assert max(map(len, text.splitlines())) <= 40


@pytest.mark.parametrize("name", ["verdict", "a-verdict", "03-telemetry", "", "*"])
def test_a_page_that_is_not_there_is_an_error(name):
    with pytest.raises(KeyError):
        guide.page_text(name)
