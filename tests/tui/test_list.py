"""The list of the screen: its cursor, its order, its functions, its marks; and where the keys
go.
"""

from datetime import UTC, datetime, timedelta

import pytest
from found import finding
from journey import Tape, choose, flat, idle, listed, shown, type_in, until, visit
from msgspec.structs import replace
from recorded import run_file

from gpulab.catalog.catalog import catalog
from gpulab.catalog.view import OutcomeMark
from gpulab.core.events import Samples
from gpulab.core.run_file import read_run_file
from gpulab.features.course.report import course
from gpulab.features.predictions.report import Answered, Prediction
from gpulab.report.build import build_report, fold_all
from gpulab.report.past import past_run
from gpulab.session.launch import start_entry
from gpulab.session.run import FileSource, Run
from gpulab.session.store import Store
from gpulab.tui.earlier import add_run
from gpulab.tui.panels.catalog import ScenarioList
from gpulab.tui.screens.lab import LabScreen

TRAIN = (
    '"""A script."""\n\n\ndef step():\n    """One step."""\n\n\ndef with_arguments(x):\n    '
    "return x\n"
)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_functions_of_a_file_come_first_say_what_is_wrong_and_run(tmp_path):
    train = tmp_path / "train.py"
    train.write_text(TRAIN)
    started = []

    def starter(entry, settings):
        if entry.error:
            return start_entry(entry, settings)
        started.append((entry.name, entry.function))
        return FileSource(run_file("function", tmp_path))

    async def journey(pilot):
        lines = listed(pilot)
        assert [line.split()[0] for line in lines[:3]] == [
            "your",
            ">train:step",
            "train:with_arguments",
        ]
        assert "it takes arguments (x)" in lines[2]
        await pilot.press("1")
        assert "a plain function: it is timed and profiled" in flat(pilot)
        for text, error in (
            ("def step(:\n", "train.py, line 1: syntax error"),
            ("x = 1\n", "no function step any more"),
        ):
            train.write_text(text)
            await pilot.press("r")
            assert error in flat(pilot)
            assert "r runs it." not in flat(pilot)
            await pilot.press("escape")
        train.write_text(TRAIN)
        await pilot.press("r")
        await until(pilot, lambda: "computing 77%" in shown(pilot))
        assert started == [("train:step", "step")]
        assert "control" not in shown(pilot)
        assert "verdict" not in shown(pilot)

    visit(journey, train, starter=starter)


def test_a_broken_file_is_explained_and_not_offered_until_it_is_fixed(tmp_path):
    broken = tmp_path / "broken.py"
    started = []

    def starter(entry, settings):
        if entry.error:
            return start_entry(entry, settings)
        started.append(entry)
        return FileSource(run_file("checks", tmp_path))

    broken.write_text("from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n")

    async def journey(pilot):
        await pilot.press("r")
        assert "broken.py, line 2: Scenario: unexpected keyword 'spede'" in flat(pilot)
        for tab in "1345":
            await pilot.press(tab)
            assert "unexpected keyword 'spede'; it takes needs" in flat(pilot)
            assert "runs it" not in flat(pilot)
        broken.write_text(
            "from gpulab import Scenario\nscenario = Scenario('x')\n@scenario.variant\ndef a(lab): ...\n"
        )
        await pilot.press("r")
        await until(pilot, lambda: bool(started) and idle(pilot))
        assert "stale wrong" in flat(pilot)
        await pilot.press("escape")
        assert any("broken" in line and "wrong" in line for line in listed(pilot))

    visit(journey, broken, starter=starter)


def test_what_cannot_run_here_says_what_it_needs_and_the_cursor_starts_behind_it(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    paths = []
    for name, needs in (("first", ("cuda",)), ("other", ())):
        paths.append(tmp_path / f"{name}.py")
        paths[-1].write_text(
            f'"""{name.title()}: a lesson.\n\nText of {name}."""\nfrom gpulab import Scenario\n'
            f"scenario = Scenario('x', needs={needs})\n@scenario.variant\ndef a(lab): ...\n"
        )

    async def journey(pilot):
        first, other = listed(pilot)[1:3]
        assert first.startswith("first ")
        assert first.split("a lesson.")[1].split() == ["needs", "a", "GPU"]
        assert other.startswith(">other")
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: listed(pilot)[1].endswith("  G"))
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: listed(pilot)[1].endswith(" needs a GPU"))
        assert "gpulab cpu, 1 thread" in flat(pilot)
        await until(pilot, lambda: "Text of other." in flat(pilot))
        await pilot.press("up")
        assert listed(pilot)[1].startswith(">first")
        assert "Text of other." in flat(pilot), "a step through the list draws its lines only"
        await until(pilot, lambda: "Text of first." in flat(pilot))

    visit(journey, *paths)


def test_both_sizes_show_what_they_have_room_for():
    async def journey(pilot):
        scenarios = pilot.app.screen.query_one(ScenarioList)
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert scenarios.outer_size.width == 80
        scenarios.mark("gradient_accumulation", OutcomeMark("stopped", "dim"))
        await choose(pilot, "gradient_accumulation")
        (line,) = [line for line in listed(pilot) if "gradient_accumulation" in line]
        assert " stopped" in line, "marks stand apart from the longest name"
        await choose(pilot, "batched_matmul")
        await pilot.press("1")
        assert not scenarios.display
        assert "pays for every launch" in flat(pilot)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: scenarios.display)
        assert "pays for every launch" in flat(pilot)
        assert "Two costs, on the host and on the device" in flat(pilot)
        await choose(pilot, "gradient_accumulation")
        (line,) = [line for line in listed(pilot) if "gradient_accumulation" in line]
        assert " stopped" in line

    visit(journey)


@pytest.mark.slow
def test_tabs_take_the_focus_with_them():
    """In a hidden pane the focus made every key dead."""

    async def journey(pilot):
        await pilot.press("1", "tab")
        await until(
            pilot, lambda: pilot.app.focused is not None and pilot.app.focused.id == "lesson-pane"
        )
        for key, pane in (
            ("3", "result-pane"),
            ("4", "roofline-pane"),
            ("5", "log-pane"),
            ("2", "code-pane"),
            ("1", "lesson-pane"),
        ):
            await pilot.press(key)
            assert pilot.app.focused.id == pane
        await pilot.press("escape")
        assert pilot.app.focused.id == "list"
        await pilot.press("3")
        assert pilot.app.focused.id == "list"  # beside the tabs the list keeps it
        await pilot.press("1", "tab")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert pilot.app.focused is not None

    visit(journey, size=(120, 40))


def test_listing_runs_nothing_and_says_of_a_file_what_it_lacks(tmp_path):
    """A file that would fail at import is listed."""
    path, empty = tmp_path / "explodes.py", tmp_path / "empty.py"
    path.write_text(
        "open('was_run', 'w')\nraise SystemExit\nfrom gpulab import Scenario\nscenario = "
        "Scenario('x')\n@scenario.variant\ndef a(lab): ...\n"
    )
    empty.write_text("x = 1\n")

    async def journey(pilot):
        lines = listed(pilot)
        assert any("no Scenario and no public function" in line for line in lines)
        assert ">explodes" in lines
        await pilot.press("1")
        assert "a file " in flat(pilot)
        assert not (tmp_path / "was_run").exists()

    visit(journey, path, empty)


def test_an_earlier_result_opens_from_the_list_and_a_stopped_run_leaves_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    scenario = tmp_path / "precision.py"
    scenario.write_text(
        '"""Precision: bits."""\nfrom gpulab import Scenario\nscenario = Scenario("x")\n'
        "@scenario.variant\ndef fp32(lab): ...\n@scenario.variant\ndef tf32(lab): ...\n"
    )
    recorded = run_file("precision-h200", tmp_path)
    state = fold_all(read_run_file(recorded).events)
    past = replace(
        past_run(state, build_report(state, str(recorded))),
        path=str(scenario),
        at=(datetime.now(UTC) - timedelta(hours=2)).isoformat(),
    )
    answered = Answered(
        at="", scenario="precision", prediction=Prediction((4.0,)), measured=past.comparisons[-1]
    )
    smoke = tmp_path / "smoke-run.jsonl"
    smoke.write_bytes(recorded.read_bytes())
    with Store() as store:
        store.add_run(past)
        store.add_run(
            replace(past, smoke=True, run_file=str(smoke), at=datetime.now(UTC).isoformat())
        )
        store.keep("predictions", "", "0", answered)
    stopped = Tape(recorded, lambda event: isinstance(event, Samples))
    stopped.path = tmp_path / "stopped.jsonl"

    async def journey(pilot):
        await until(pilot, lambda: listed(pilot)[1].endswith("29.5x faster     2 h"))
        assert " bits." in listed(pilot)[1]
        await pilot.press("1")
        assert "last run " in flat(pilot)
        assert "smoke run the newest run, just now" in flat(pilot)
        assert ", faster, 2 h ago" in flat(pilot)
        assert "you predicted 4.00x; measured" in flat(pilot)
        assert "source changed since the last run" in flat(pilot)
        await pilot.press("escape", "enter")
        await until(pilot, lambda: "2 h ago: r runs it anew" in shown(pilot))
        assert "the newest run was a smoke run (just now; h lists it)" in flat(pilot)
        assert "the source has changed since" in flat(pilot)
        assert "29.5x" in flat(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "MEASURE" in shown(pilot))
        assert "anew" not in shown(pilot)
        stopped.stop()
        await until(pilot, lambda: "the newest run was stopped" in flat(pilot))
        assert "29.5x" in flat(pilot)
        await pilot.press("escape")
        assert any("29.5x faster     2 h" in line for line in listed(pilot))

    visit(journey, scenario, size=(80, 60), starter=lambda entry, settings: stopped)


def test_a_smoke_run_of_now_leaves_the_result_of_before(tmp_path):
    paths = (run_file(name, tmp_path) for name in ("precision-h200", "smoke"))
    first, smoke = (Run(FileSource(path)) for path in paths)
    for run in (first, smoke):
        run.poll()
    result = add_run(None, first, None)
    assert add_run(result, smoke, None).shown is result.shown
    only_smoke = add_run(None, smoke, None)
    assert only_smoke.shown is only_smoke.newest
    assert add_run(only_smoke, first, None).shown == result.shown


def names(pilot):
    """The scenarios that the list shows, in its order."""
    scenarios = pilot.app.screen.query_one(ScenarioList)
    return [option.id for option in scenarios.options if option.id is not None]


def test_the_list_is_in_the_order_of_the_course_and_c_puts_it_by_topic():
    async def journey(pilot):
        by_course = names(pilot)
        in_order = [lesson.name for stage in course() for lesson in stage.lessons]
        assert [name for name in by_course if name in in_order] == in_order
        assert any(line.startswith("1. ") for line in listed(pilot))
        await pilot.press("c")
        await until(pilot, lambda: names(pilot) != by_course)
        assert pilot.app.screen.query_one(ScenarioList).chosen == "batched_matmul", (
            "the cursor stays where it was"
        )
        await pilot.press("c")
        await until(pilot, lambda: names(pilot) == by_course)

    visit(journey, size=(120, 90))


def test_search_finds_names_lessons_and_code_as_one_types():
    """The cursor is on what has the name; where nothing is found nothing breaks."""

    async def journey(pilot):
        every = names(pilot)
        await pilot.press("slash")
        await type_in(pilot, "torch.bmm")
        await until(pilot, lambda: 0 < len(names(pilot)) < len(every))
        assert all("torch.bmm" in entry.source for entry in catalog() if entry.name in names(pilot))
        await pilot.press("ctrl+u")
        await type_in(pilot, "batched mat")
        await until(pilot, lambda: "batched_matmul" in names(pilot))
        await pilot.press("enter")
        assert pilot.app.focused.id == "list"
        assert len(names(pilot)) < len(every), "what was found stays"
        await pilot.press("slash", "escape")
        await until(pilot, lambda: names(pilot) == every)
        assert pilot.app.focused.id == "list"
        await pilot.press("slash")
        await type_in(pilot, "fused_soft")
        await until(
            pilot, lambda: pilot.app.screen.query_one(ScenarioList).chosen == "fused_softmax"
        )
        assert "vector_add" in names(pilot), "whose lesson speaks of it"
        await pilot.press("escape", "slash")
        await type_in(pilot, "xyzzy")
        await until(pilot, lambda: not names(pilot))
        await pilot.press("enter", "r", "space", "1")
        assert f"none of {len(every)} has that" in flat(pilot)
        assert "back" in pilot.app.screen.footer_keys()
        await pilot.press("escape", "escape")
        assert pilot.app.screen.query_one(ScenarioList).chosen == "fused_softmax"
        await pilot.press("slash", "escape")
        await until(pilot, lambda: "batched_matmul" in names(pilot))

    visit(journey)


@pytest.mark.slow
def test_a_search_that_is_left_gets_no_more_keys():
    """The focus went into the hidden line when the list made way: keys were typed unseen."""

    async def journey(pilot):
        await pilot.press("slash")
        await type_in(pilot, "matmul")
        await pilot.press("enter")
        found = names(pilot)
        await pilot.press("left_square_bracket", "2")
        await until(pilot, lambda: not pilot.app.screen.query_one(ScenarioList).display)
        assert "Code" in pilot.app.screen._detail.active.title()
        await pilot.press("left_square_bracket")
        for width in (80, 120):
            await pilot.resize_terminal(width, 40)
            await pilot.press("x", "1")
        assert pilot.app.focused is not None
        assert pilot.app.focused.id != "search"
        await pilot.press("left_square_bracket", "escape")
        assert pilot.app.screen.query_one(ScenarioList).display
        assert names(pilot) == found

    visit(journey, size=(120, 40))


@pytest.mark.slow
def test_ctrl_c_quits_wherever_one_types(monkeypatch):
    quits = []
    monkeypatch.setattr(LabScreen, "quit", lambda screen: quits.append(1))

    async def journey(pilot):
        for number, keys in enumerate(("p", "g", ("h", "slash"), "slash", "question_mark"), 1):
            await pilot.press(*keys if isinstance(keys, tuple) else (keys,))
            await pilot.press("ctrl+c")
            await until(pilot, lambda number=number: len(quits) == number)
            await pilot.press("escape", "escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, LabScreen))

    visit(journey)


def test_a_prediction_is_about_the_variants_that_run_here():
    async def journey(pilot):
        await pilot.press("g")
        await until(pilot, lambda: "How many times as fast is bmm?" in flat(pilot))
        assert "graphed is skipped here: " in flat(pilot)
        assert "started by one launch" not in flat(pilot)

    visit(journey)


def test_what_is_picked_runs_one_after_the_other(tmp_path):
    started = []

    def starter(entry, settings):
        started.append(entry.name)
        if entry.name == "small_kernels":
            return finding("no_gpu", need="cuda")
        return FileSource(run_file("smoke", tmp_path))

    async def journey(pilot):
        await pilot.press("R")
        assert "m marks scenarios" in flat(pilot)
        for name in ("batched_matmul", "small_kernels", "precision"):
            await choose(pilot, name)
            await pilot.press("m")
        assert sum(line.startswith("*") for line in listed(pilot)) == 3
        await pilot.press("R")
        assert "Run 3 scenarios: batched_matmul, small_kernels, precision?" in flat(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: len(started) == 3 and idle(pilot))
        assert started == ["batched_matmul", "small_kernels", "precision"]
        assert any("small_kernels" in line and "cannot" in line for line in listed(pilot))
        assert not any(line.startswith("*") for line in listed(pilot))

    visit(journey, starter=starter)
