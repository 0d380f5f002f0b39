"""The panels of a run, the code, predictions and help, over recorded runs: keys in, text out."""

import pytest
from journey import Tape, flat, idle, shown, type_in, until, visit
from recorded import run_file

from gpulab.core.events import Samples, SoloRun
from gpulab.features.predictions.report import Answered, Prediction
from gpulab.features.telemetry.events import Telemetry
from gpulab.session.run import FileSource
from gpulab.session.store import Store


def test_telemetry_is_drawn_over_time_beside_the_run(hostile_scenario, tmp_path):
    readings = iter(range(10_000))
    tape = Tape(
        run_file("standin-gpu", tmp_path),
        lambda event: isinstance(event, Telemetry) and next(readings) == 12,
    )

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "10 %  ⣀⣀" in shown(pilot))
        assert "50 %  ⣤⣤" in shown(pilot)
        assert "410/700 W" in shown(pilot)
        assert "clocks ok" in shown(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot))

    visit(journey, hostile_scenario, size=(80, 30), starter=lambda entry, settings: tape)


@pytest.mark.slow
def test_a_frozen_screen_stays_and_a_panel_fills_the_screen(hostile_scenario, tmp_path):
    tape = Tape(run_file("precision-h200", tmp_path), lambda event: isinstance(event, Samples))

    async def journey(pilot):
        await pilot.press("z")
        assert "r runs it" not in flat(pilot), "there is no run to look at"
        await pilot.press("r")
        await until(pilot, lambda: "MEASURE" in shown(pilot))
        await pilot.press("tab", "space")
        await until(pilot, lambda: "paused (space resumes)" in shown(pilot))
        tape.go_on_to(lambda event: isinstance(event, SoloRun))
        await pilot.pause(0.6)
        assert "▸MEASURE" in shown(pilot)
        await pilot.press("space")
        await until(pilot, lambda: "▸ALONE" in shown(pilot) and "confidence" in shown(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "confidence" not in shown(pilot))
        assert "████" in shown(pilot)
        await pilot.press("right")
        await until(pilot, lambda: "confidence" in shown(pilot))
        assert "time of a step" not in shown(pilot)
        await pilot.press("left", "escape")
        await until(pilot, lambda: "device: NVIDIA H200" in shown(pilot))
        assert "time of a step" in shown(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot))
        await pilot.press("z")
        await until(pilot, lambda: "MEASURED" in shown(pilot))

    visit(journey, hostile_scenario, size=(120, 40), starter=lambda entry, settings: tape)


@pytest.mark.slow
def test_the_bill_of_a_step_has_a_tab(hostile_scenario, tmp_path):
    async def journey(pilot):
        await pilot.press("6")
        await until(pilot, lambda: "r runs it" in flat(pilot))
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot) and "FASTER" in shown(pilot))
        await pilot.press("6")
        await until(pilot, lambda: "of a step of" in flat(pilot))

    recording = FileSource(run_file("phases", tmp_path))
    visit(journey, hostile_scenario, size=(80, 24), starter=lambda entry, settings: recording)


def test_help_explains_what_is_on_the_screen_and_a_result_is_copied(
    hostile_scenario, tmp_path, monkeypatch
):
    monkeypatch.setenv("EDITOR", "true")

    async def journey(pilot):
        await pilot.press("e")
        assert "the screen is not on a terminal" in flat(pilot)
        await pilot.press("y")
        assert "recorded has no result to copy: r runs it" in flat(pilot)
        assert not list(tmp_path.glob("*.md"))
        await pilot.press("question_mark")
        await until(pilot, lambda: "run it" in flat(pilot))
        assert "n the next lesson of the course" in flat(pilot)
        await pilot.press("escape", "r")
        await until(pilot, lambda: idle(pilot) and "FASTER" in shown(pilot))
        await pilot.press("y")
        await until(pilot, lambda: "copied the result, 24 lines, and in " in flat(pilot))
        text = (tmp_path / "fixes.md").read_text()
        assert text.startswith("```\n")
        assert "99 % interval" in text
        assert pilot.app.clipboard == text
        await pilot.press("f1")
        await until(pilot, lambda: "words on this screen" in shown(pilot))
        assert "the verdict first, then the picture" in flat(pilot)
        await until(pilot, lambda: "the baseline built a second time" in flat(pilot))
        assert "power cap" not in flat(pilot), "it is not on this screen"
        await pilot.press("escape", "escape")
        await until(pilot, lambda: idle(pilot))

    visit(journey, hostile_scenario, starter=lambda *_: FileSource(run_file("fixes", tmp_path)))


@pytest.mark.slow
def test_the_code_shows_what_differs_and_where_it_failed(hostile_scenario, tmp_path):
    async def journey(pilot):
        await pilot.press("2")
        await until(pilot, lambda: "good · the baseline" in flat(pilot))
        assert "-     '''[b]summary." in shown(pilot)
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot) and "failed" in shown(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "◀ ValueError: boom" in flat(pilot))

    visit(
        journey,
        hostile_scenario,
        starter=lambda entry, settings: FileSource(run_file("raises", tmp_path)),
    )


_YELLOW = 3


def is_yellow(pilot, words):
    styles = [
        segment.style
        for row in pilot.app.screen._compositor.render_strips()
        for segment in row
        if words in segment.text
    ]
    return any(style and style.color and style.color.number == _YELLOW for style in styles)


def test_a_prediction_is_kept_and_set_beside_what_came_out(hostile_scenario, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tape = Tape(run_file("precision-h200", tmp_path), lambda event: isinstance(event, Samples))

    async def journey(pilot):
        await pilot.press("g")
        await until(pilot, lambda: "How many times as fast is bad?" in flat(pilot))
        await type_in(pilot, "fast")
        await until(pilot, lambda: is_yellow(pilot, "a number such as 4"))
        await pilot.press("enter")
        await until(pilot, lambda: "type a number above zero" in flat(pilot))
        await pilot.press("ctrl+u")
        await type_in(pilot, "4 8 20")
        await pilot.press("down")
        await type_in(pilot, "memry")
        await pilot.press("enter")
        await until(pilot, lambda: "one of memory, arithmetic, launches, waiting" in flat(pilot))
        await pilot.press("ctrl+u", "m", "enter")
        await until(pilot, lambda: "predicted 8.00x" in flat(pilot))
        await until(pilot, lambda: "hidden until the verdict is final" in flat(pilot))
        assert "with tensor cores" not in flat(pilot)
        tape.go_on()
        await until(
            pilot, lambda: idle(pilot) and "median prediction 8.00x; measured 29.5x" in flat(pilot)
        )
        with Store() as store:
            (kept,) = store.kept("predictions", "", Answered)
        assert "you predicted: limited by memory; measured: compute-bound" in flat(pilot)
        assert kept.prediction == Prediction((4.0, 8.0, 20.0), "memory")
        assert kept.measured.measured == pytest.approx(29.46, rel=0.01)

    visit(journey, hostile_scenario, size=(120, 40), starter=lambda entry, settings: tape)
