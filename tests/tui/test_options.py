"""What refines runs from the screen: the form of parameters, sweeps, themes, the user's own keys,
commands.
"""

import os

import pytest
from journey import flat, idle, shown, type_in, until, visit
from recorded import run_file
from textual.command import CommandList

from gpulab.session.run import FileSource
from gpulab.session.run_files import state_folder
from gpulab.tui.app import LabApp
from gpulab.tui.bindings import keymap_path, read_keymap
from gpulab.tui.screens.lab import LabScreen
from gpulab.tui.screens.options import OptionsScreen
from gpulab.tui.themes import TERMINAL, kept_theme

STEP = '''"""Sized: a step whose work has a size.

It works.
"""
from time import sleep

from gpulab import Scenario, Work

scenario = Scenario("compute", params={"n": 16, "label": "x"}, sweep={"n": (1, 2)})


@scenario.variant
def slow(lab, n, label):
    return Work(lambda: sleep(n * 0.0002))


@scenario.variant
def quick(lab, n, label):
    return Work(lambda: sleep(n * 0.0001))
'''


@pytest.fixture
def sized(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "sized.py"
    path.write_text(STEP)
    return path


async def form(pilot):
    await pilot.press("p")
    await until(pilot, lambda: isinstance(pilot.app.screen, OptionsScreen))


def test_the_form_takes_what_is_valid_and_t_runs_it_for_longer(sized, tmp_path):
    started = []

    def starter(entry, settings):
        started.append(settings)
        return FileSource(run_file("fixes", tmp_path))

    async def journey(pilot):
        await pilot.press("t")
        assert not started, "there is nothing to run again"
        await form(pilot)
        assert [field.default for field in pilot.app.screen._fields] == [
            "16",
            "x",
            "cpu",
            "10",
            "name=a,b,c",
        ]
        await type_in(pilot, "many")
        await until(pilot, lambda: "n takes a whole number, as in n=16" in flat(pilot))
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, OptionsScreen), "what cannot run is not taken"
        await pilot.press("ctrl+u", "8", "down", "down")
        await type_in(pilot, "tpu")
        await until(pilot, lambda: "write cpu, cuda or cuda:N" in flat(pilot))
        await pilot.press("ctrl+u", "down")
        await type_in(pilot, "soon")
        await until(pilot, lambda: "write a number of seconds" in flat(pilot))
        await pilot.press("ctrl+u")
        await type_in(pilot, "2.5")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(pilot.app.screen, LabScreen))
        assert not started, "it is kept for later"
        await pilot.press("1")
        await until(pilot, lambda: "chosen n=8 time=2.5s" in flat(pilot))
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot) and bool(started))
        assert started[0].chosen == {"n": "8"}
        assert started[0].time_s == 2.5
        await pilot.press("t")
        assert "Run sized again for 2 s?" in flat(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: idle(pilot) and len(started) == 2)
        run = pilot.app._lab.runs.of("sized")
        assert started[1].time_s == pytest.approx(4 * run.state.job.time_s)
        await form(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LabScreen))

    visit(journey, sized, starter=starter)


@pytest.mark.slow
def test_a_sweep_runs_every_value_and_the_final(sized):
    async def journey(pilot):
        await pilot.press("S", "enter")
        await until(pilot, lambda: "n=1, 1 of 2" in shown(pilot))
        await until(pilot, lambda: "n=2, 2 of 2" in shown(pilot))
        await until(pilot, lambda: "final of n" in shown(pilot))
        await until(pilot, lambda: idle(pilot))
        assert "sized · n = 1, 2" in shown(pilot)
        await pilot.press("end")
        await until(pilot, lambda: "final" in flat(pilot))

    visit(journey, sized)


@pytest.mark.slow
def test_a_sweep_that_is_stopped_keeps_what_it_has(sized):
    async def journey(pilot):
        await pilot.press("S", "enter")
        await until(pilot, lambda: "n=2, 2 of 2" in shown(pilot))
        await pilot.press("s", "s")
        await until(pilot, lambda: idle(pilot))
        assert "sized · n = 1" in shown(pilot)

    visit(journey, sized)


def has_colours(pilot):
    styles = [
        segment.style
        for strip in pilot.app.screen._compositor.render_strips()
        for segment in strip
        if segment.style is not None and segment.style.color is not None
    ]
    return not all(style.color.is_default for style in styles)


@pytest.mark.slow
def test_the_theme_is_kept(sized, monkeypatch):
    async def change(pilot):
        assert pilot.app.theme == "terminal"
        await pilot.press("T")
        await until(pilot, lambda: "theme: mono" in shown(pilot))
        assert not has_colours(pilot)
        await pilot.press("T", "T")
        assert pilot.app.theme == "light"
        assert has_colours(pilot)

    async def look(pilot):
        assert pilot.app.theme == "light"
        await pilot.press("T")
        assert pilot.app.theme == "contrast"
        await pilot.press("T")
        assert pilot.app.theme == "terminal"

    visit(change, sized)
    with monkeypatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        assert LabApp(ascii_only=False).theme == "terminal", "the only one without colours"
    visit(look, sized)


ODD_FILES = {
    # what lies there: (the theme, the keys, what is said)
    "pipes": (os.mkfifo, os.mkfifo, "keys.toml: not a regular file"),
    "odd bytes": (
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_bytes(b"\xff"),
        "keys.toml: 'utf-8' codec",
    ),
    "nesting": (
        lambda path: path.write_text("light"),
        lambda path: path.write_text("a = " + "[" * 3000),
        "keys.toml: nested too deeply",
    ),
    "much": (
        lambda path: path.write_text("light" * 1_000_000),
        lambda path: path.write_text("#" * 1_000_001),
        "keys.toml: larger than 1000000 bytes",
    ),
}


def lay(make_theme, make_keys):
    """Odd files in the place of both."""
    for path, make in ((state_folder() / "theme", make_theme), (keymap_path(), make_keys)):
        path.parent.mkdir(parents=True)
        make(path)


@pytest.mark.parametrize("name", ODD_FILES)
def test_whatever_lies_in_the_place_of_theme_and_keys_is_said(sized, name):
    *make, said = ODD_FILES[name]
    lay(*make)
    keys, problem = read_keymap()
    assert said in problem
    assert (kept_theme(), len(keys)) == ("light" if name == "nesting" else TERMINAL, "run" in keys)


def test_the_app_comes_up_beside_odd_files_and_says_so(sized):
    *make, said = ODD_FILES["pipes"]
    lay(*make)

    async def journey(pilot):
        await until(pilot, lambda: said in flat(pilot))
        await pilot.press("T")
        await until(pilot, lambda: "theme: " in flat(pilot))

    visit(journey, sized, size=(160, 24))


def test_the_users_keys_take_the_place_of_others(sized, tmp_path):
    keys = tmp_path / "config" / "gpulab" / "keys.toml"
    keys.parent.mkdir(parents=True)
    keys.write_text('help = "f2"\nzooom = "x"\n')

    async def journey(pilot):
        await until(pilot, lambda: "keys.toml: zooom" in flat(pilot))
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, LabScreen)
        await pilot.press("f2")
        await until(pilot, lambda: "keys and words" in flat(pilot))
        assert "f2 keys, and the words that are on the screen" in flat(pilot)

    visit(journey, sized, size=(80, 70))
    keys.write_text("help = \n")
    keymap, problem = read_keymap()
    assert not keymap
    assert "keys.toml: Invalid" in problem


@pytest.mark.slow
def test_every_command_has_a_name():
    async def journey(pilot):
        await pilot.press("ctrl+p")
        await type_in(pilot, "go to precision")
        found = pilot.app.screen.query_one(CommandList)
        await until(pilot, lambda: found.option_count == 1 and found.highlighted == 0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LabScreen))
        await until(pilot, lambda: "fewer bits for each number" in flat(pilot))

    visit(journey)
