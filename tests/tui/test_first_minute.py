"""The first minute: lesson 1 under the cursor, a guess, the recording, and what comes next."""

from collections import defaultdict

from journey import choose, flat, idle, listed, shown, type_in, until, visit
from recorded import recorded_path

from gpulab.features.predictions.report import Answered
from gpulab.headless.scripting import load
from gpulab.session.store import Store
from gpulab.tui import bindings
from gpulab.tui.panels.catalog import ScenarioList
from gpulab.tui.screens.history import ComparePage, HistoryList, HistoryScreen
from gpulab.tui.screens.replay import ReplayScreen


def test_a_guess_goes_on_to_the_recording_where_a_lesson_cannot_run(tmp_path, monkeypatch):
    """Its claim is hidden until the recording has ended, what it expects until it is guessed; the
    recording opens where it measures, and shows the guesses.
    """
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def journey(pilot):
        await type_in(pilot, "/pinned_memory")
        await pilot.press("enter")
        await until(pilot, lambda: "g: guess" in flat(pilot))
        assert "13.1 ms" not in flat(pilot)
        await pilot.press("g")
        await until(pilot, lambda: "guess, then watch the recording" in flat(pilot))
        await type_in(pilot, "3 5 4")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await until(pilot, lambda: "predicted 4.00x" in flat(pilot))
        assert "measure 1" in shown(pilot).splitlines()[0]
        await until(pilot, lambda: "claim: hidden until the verdict is final" in flat(pilot))
        assert "3 guesses, median 4.00x: 3x 4x 5x" in flat(pilot)
        await pilot.press("colon")
        await type_in(pilot, "100%")
        await pilot.press("enter")
        best = load(recorded_path("h200/pinned_memory")).comparison("pinned_non_blocking").speedup
        guessed = f"median prediction 4.00x; measured {best.value:.3g}x"
        await until(pilot, lambda: guessed in flat(pilot))
        assert "nearest: 5x" in flat(pilot)
        await pilot.press(
            "z", "escape", "pagedown"
        )  # a hidden list had the focus, and ended it all
        await pilot.press("escape")
        await until(pilot, lambda: "13.1 ms" in flat(pilot))
        (line,) = [line for line in rows(pilot) if "pinned_memory" in line]
        assert line.startswith("◐")
        with Store() as store:
            (kept,) = store.kept("predictions", "", Answered)
        assert kept.prediction.speedups == (3.0, 5.0, 4.0)

    visit(journey, size=(120, 40))


def test_n_at_the_end_of_a_recording_opens_the_next_lesson(tmp_path, monkeypatch):
    """Its screen is left while its last line is made again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def journey(pilot):
        await type_in(pilot, "/pinned_memory")
        await pilot.press("enter", "v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await pilot.press("end", "n")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ReplayScreen))

    visit(journey, size=(120, 40))


def rows(pilot):
    scenarios = pilot.app.screen.query_one(ScenarioList)
    return [scenarios.render_line(y).text for y in range(scenarios.size.height)]


def test_lesson_one_is_under_the_cursor_marked_when_it_was_read_and_n_goes_on(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def read_one(pilot):
        scenarios = pilot.app.screen.query_one(ScenarioList)
        scenarios.highlighted = scenarios.get_option_index("cold_start")
        assert scenarios._first_to_run() == "cold_start"
        await until(pilot, lambda: "new here? enter: lesson 1" in shown(pilot).splitlines()[0])
        await pilot.press("enter")
        await until(pilot, lambda: "Cold start" in flat(pilot))
        await pilot.press("n")
        await until(pilot, lambda: scenarios.chosen == "timing_without_sync")

    async def again(pilot):
        await until(pilot, lambda: any(row.startswith("○ cold_start") for row in rows(pilot)))
        assert not any("cannot" in line for line in listed(pilot))

    visit(read_one, size=(120, 40))
    visit(again, size=(120, 40))


def test_questions_of_a_lesson_are_answered_on_a_key():
    async def journey(pilot):
        await pilot.press("1", "tab", "end")
        await until(pilot, lambda: "a shows the answers" in flat(pilot))
        await pilot.press("a")
        await until(pilot, lambda: "a shows the answers" not in flat(pilot))
        assert idle(pilot)

    visit(journey, size=(120, 40))


def test_a_letter_means_the_same_on_every_screen():
    meant = defaultdict(set)
    for key in (*bindings.KEYS, *bindings.REPLAY):
        for name in key.key.split(","):
            meant[name].add(key.id)
    screens = (HistoryScreen, HistoryList, ComparePage)
    for binding in [binding for screen in screens for binding in screen.BINDINGS]:
        for name in binding.key.split(","):
            if len(name) == 1:
                meant[name].add(_SAME.get(binding.description, binding.description))
    several = {name: ids for name, ids in meant.items() if len(ids) > 1}
    # the view of a run that goes on stops, and so does that of one that is played
    assert several.pop("space") == {"freeze", "pause"}
    assert not several


_SAME = {"": "quit", "replay": "replay", "copy": "copy", "mark": "mark"}
"""The id of the key of the lab that does this."""


def test_the_footer_names_keys_that_do_something(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    known = {key.id for key in (*bindings.KEYS, *bindings.REPLAY)}
    named = {*bindings.VITAL, *(name for names in bindings._FOOTER.values() for name in names)}
    assert named <= known

    async def journey(pilot):
        assert "new here?" not in shown(pilot)
        assert [*pilot.app.screen.footer_keys()][:5] == [*bindings._FOOTER["list"][:5]]
        await pilot.press("enter")
        await until(pilot, lambda: next(iter(pilot.app.screen.footer_keys())) == "predict")
        await pilot.press("escape")
        await choose(pilot, "timing_without_sync")  # needs a GPU, and has a recording
        assert [*pilot.app.screen.footer_keys()][:3] == ["open", "replay", "course"]

    async def narrow(pilot):
        assert {"help", "quit"} < set(pilot.app.screen.footer_keys())
        await pilot.press("enter")
        await until(pilot, lambda: {"back", "help", "quit"} < set(pilot.app.screen.footer_keys()))

    visit(journey)
    visit(narrow, size=(60, 15))
