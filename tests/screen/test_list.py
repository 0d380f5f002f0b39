"""The list of the screen: its cursor, its order, its functions, its marks; and where the keys go."""

import pytest
from journey import choose, flat, listed, shown, until, visit
from recorded import run_file

from gpulab.session.source import File
from gpulab.tui.panels.scenario_list import ScenarioList

TRAIN = '"""A script."""\n\n\ndef step():\n    """One step."""\n\n\ndef with_arguments(x):\n    return x\n'


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("theme", ["ansi-dark", "textual-dark", "textual-light", "nord", "gruvbox"])
def test_the_cursor_is_visible_under_any_theme(theme):
    async def journey(pilot):
        pilot.app.theme = theme
        await pilot.pause()
        scenarios = pilot.app.screen.query_one(ScenarioList)
        await pilot.press("home")
        for _ in range(3):
            row = scenarios.highlighted - scenarios.scroll_offset.y
            strip = scenarios.render_line(row)
            assert strip.text.startswith(">")
            assert all(segment.style.reverse for segment in strip if segment.text.strip())
            assert sum(line.startswith(">") for line in listed(pilot)) == 1
            await pilot.press("down")

    visit(journey)


def test_functions_of_a_file_that_was_named_come_first_and_run(tmp_path):
    train = tmp_path / "train.py"
    train.write_text(TRAIN)
    started = []

    def starter(entry, settings):
        started.append((entry.name, entry.function))
        return File(run_file("function", tmp_path))

    async def journey(pilot):
        lines = listed(pilot)
        assert [line.split()[0] for line in lines[:3]] == ["your", ">train:step", "train:with_arguments"]
        assert "it takes arguments (x)" in lines[2]
        await pilot.press("1")
        assert "a plain function: it is timed and profiled" in flat(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "step goodput" in shown(pilot))
        assert started == [("train:step", "step")]
        assert "control" not in shown(pilot)
        assert "verdict" not in shown(pilot)

    visit(journey, train, starter=starter)


def test_a_file_with_nothing_to_run_is_listed_with_the_reason(tmp_path):
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")

    async def journey(pilot):
        assert "no Scenario and no public function" in listed(pilot)[1]

    visit(journey, empty)


def test_a_function_whose_file_is_broken_or_emptied_is_explained_when_it_is_to_run(tmp_path):
    train = tmp_path / "train.py"
    train.write_text(TRAIN)

    async def journey(pilot):
        for text, error in (
            ("def step(:\n", "train.py, line 1: syntax error"),
            ("x = 1\n", "no function step any more"),
        ):
            train.write_text(text)
            await pilot.press("r")
            for tab in "234":
                await pilot.press(tab)
                assert error in flat(pilot)
                assert "r runs it." not in flat(pilot)
            await pilot.press("escape")

    visit(journey, train)


def test_a_broken_file_is_explained_and_not_offered(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n")

    async def journey(pilot):
        await pilot.press("r")
        assert "broken.py, line 2: Scenario: unexpected keyword 'spede'" in flat(pilot)
        for tab in "1234":
            await pilot.press(tab)
            assert "unexpected keyword 'spede'; it takes needs" in flat(pilot)
            assert "runs it" not in flat(pilot)

    visit(journey, broken)


def test_marks_stand_apart_from_the_longest_name(tmp_path):
    async def journey(pilot):
        scenarios = pilot.app.screen.query_one(ScenarioList)
        scenarios.mark("gradient_accumulation", "stopped", "dim")
        await choose(pilot, "gradient_accumulation")
        assert any("gradient_accumulation stopped" in line for line in listed(pilot))

    visit(journey, size=(80, 24))
    visit(journey, size=(120, 40))


def test_both_sizes_show_what_they_have_room_for():
    async def journey(pilot):
        scenarios = pilot.app.screen.query_one(ScenarioList)
        assert scenarios.size.width == 80
        await pilot.press("1")
        assert not scenarios.display
        assert "hands all forty over in one call" in flat(pilot)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: scenarios.display)
        assert "hands all forty over in one call" in flat(pilot)
        assert "--set n=1024" in flat(pilot)

    visit(journey)


def test_tabs_take_the_focus_with_them():
    """In a hidden pane the focus made every key dead."""

    async def journey(pilot):
        await pilot.press("1", "tab")
        await until(pilot, lambda: pilot.app.focused is not None and pilot.app.focused.id == "lesson-pane")
        for key, pane in (("2", "result-pane"), ("3", "roofline-pane"), ("4", "log-pane"), ("1", "lesson-pane")):
            await pilot.press(key)
            assert pilot.app.focused.id == pane
        await pilot.press("escape")
        assert pilot.app.focused.id == "list"
        await pilot.press("2")
        assert pilot.app.focused.id == "list"  # beside the tabs the list keeps it

    visit(journey, size=(120, 40))


def test_a_terminal_that_becomes_narrow_keeps_a_focus():
    async def journey(pilot):
        await pilot.press("1", "tab")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert pilot.app.focused is not None

    visit(journey, size=(120, 40))


def test_ascii_reaches_every_cell(tmp_path):
    scenario = tmp_path / "recorded.py"
    scenario.write_text("from gpulab import Scenario\nscenario = Scenario('µ')\n@scenario.variant\ndef a(lab): ...\n")

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "us" in shown(pilot))
        assert shown(pilot).isascii()
        assert "".join(listed(pilot)).isascii()

    visit(journey, scenario, ascii_only=True, starter=lambda entry, settings: File(run_file("smoke", tmp_path)))


def test_the_app_lists_without_running_anything(tmp_path):
    """Listing executes nothing: a file that would fail at import is listed."""
    path = tmp_path / "explodes.py"
    path.write_text(
        "open('was_run', 'w')\nraise SystemExit\n"
        "from gpulab import Scenario\nscenario = Scenario('x')\n@scenario.variant\ndef a(lab): ...\n"
    )

    async def journey(pilot):
        assert listed(pilot)[1].split()[0] == ">explodes"
        await pilot.press("1")
        assert "a file " in flat(pilot)
        assert not (tmp_path / "was_run").exists()

    visit(journey, path)
