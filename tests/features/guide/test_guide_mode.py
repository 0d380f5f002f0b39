"""`--guide`: the pages of the manual as text, where nobody looks at a terminal."""

import pytest
from scripted import CommandLine

from gpulab import guide
from gpulab.draw.ascii import to_ascii


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    return CommandLine(lab, monkeypatch, capsys)


def test_without_a_page_it_lists_them(gpulab):
    pages = guide.pages()
    process = gpulab("--guide", "--ascii")
    assert process.code == 0
    listed = dict(line.split(maxsplit=1) for line in process.stdout.splitlines()[: len(pages)])
    assert listed == {name: to_ascii(title) for name, title in pages.items()}
    assert process.stdout.rstrip().endswith("gpulab --guide PAGE")


def test_every_page_goes_to_a_pipe_as_it_was_written(gpulab):
    pages = guide.pages()
    assert pages
    for name in pages:
        process = gpulab("--guide", name, "--ascii")
        assert process.code == 0
        text = to_ascii(guide.page_text(name)).rstrip("\n") + "\n"
        more = name in ("course", "claims", "findings")
        assert process.stdout == text or (more and process.stdout.startswith(text))
        assert process.stdout.startswith("# ")


def test_the_real_program_writes_a_page_in_utf_8(lab):
    lab.env = {name: value for name, value in lab.env.items() if not name.startswith("LC_")} | {
        "LANG": "C.UTF-8"
    }
    name = next(iter(guide.pages()))
    process = lab.call("--guide", name)
    assert (process.code, process.stdout) == (0, guide.page_text(name).rstrip("\n") + "\n")


def test_an_unknown_page_is_a_mistake_that_names_the_closest(gpulab):
    name = next(iter(guide.pages()))
    process = gpulab("--guide", f"{name}x")
    assert process.code == 2
    assert f"--guide {name}x: there is no such page; did you mean {name}?" in process.stderr
    process = gpulab("--guide", "0000")
    assert process.code == 2
    assert f"the pages are {', '.join(guide.pages())}" in process.stderr
