"""The history: every run of this machine, looked for, opened again, and compared."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from journey import flat, shown, type_in, until, visit
from msgspec.structs import replace
from recorded import run_file, write_run

from gpulab.catalog.catalog import catalog
from gpulab.core.run_file import read_run_file
from gpulab.report.build import build_report, fold_all
from gpulab.report.past import past_run
from gpulab.session.run_files import runs_folder, state_folder
from gpulab.session.store import NAME, Store
from gpulab.tui.screens.history import HistoryList
from gpulab.tui.screens.lab import LabScreen


def entered(*runs):
    """Put runs into the store."""
    with Store() as store:
        for run in runs:
            store.add_run(run)


def run_in(path):
    """What is kept of the run of a run file."""
    state = fold_all(read_run_file(path).events)
    return past_run(state, build_report(state, str(path)))


@pytest.fixture
def past(tmp_path, monkeypatch):
    """Two recorded runs, entered as those of an hour and of two hours ago."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    runs = []
    for hours, name in ((2, "precision-h100-1"), (1, "precision-h200")):
        at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        runs.append(replace(run_in(run_file(name, tmp_path)), at=at, path="precision.py"))
    entered(*runs)
    return runs


def rows(pilot):
    runs = pilot.app.screen.query_one(HistoryList)
    return [runs.render_line(y).text.rstrip() for y in range(1, runs.size.height)]


def cursor(pilot):
    return pilot.app.screen.query_one(HistoryList).cursor_row


async def open_history(pilot):
    await pilot.press("h")
    await until(
        pilot, lambda: pilot.app.screen.query(HistoryList) and "precision" in rows(pilot)[0]
    )


def test_runs_stand_newest_first_and_are_searched_as_one_types(past):
    async def journey(pilot):
        await open_history(pilot)
        assert "? help" in shown(pilot)
        assert rows(pilot)[0].split()[:5] == ["precision", "1", "h", "29.5x", "faster"]
        assert rows(pilot)[1].split()[:3] == ["precision", "2", "h"]
        assert "precision, 1 run with these parameters on this device" in flat(pilot)
        assert "2 runs" in shown(pilot).splitlines()[0]
        await pilot.press("down")
        await until(pilot, lambda: cursor(pilot) == 1)
        await type_in(pilot, "/h100")
        await until(pilot, lambda: "1 of 2 runs" in shown(pilot))
        assert "2 h" in rows(pilot)[0]
        await pilot.press("enter", "escape")
        await until(pilot, lambda: "history · " in shown(pilot) and "2 runs" in shown(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LabScreen))

    visit(journey)


def test_one_is_opened_again_and_two_are_compared(past, tmp_path):
    entry = next(entry for entry in catalog() if entry.name == "precision")
    (tmp_path / "smoke.jsonl").touch()
    smoke = {"path": str(entry.path), "run_file": str(tmp_path / "smoke.jsonl"), "smoke": True}
    at = (datetime.now(UTC) - timedelta(hours=3)).isoformat()
    entered(replace(past[0], **smoke, at=at, params={**entry.scenario.params, "n": 64}))

    async def journey(pilot):
        await open_history(pilot)
        assert rows(pilot)[2].split()[:4] == ["precision", "3", "h", "smoke"]
        assert rows(pilot)[2].split()[-4:] == ["H100", "80GB", "HBM3", "n=64"]
        await pilot.press("question_mark")
        await until(pilot, lambda: "play the run under the cursor again" in flat(pilot))
        assert "words on this screen" in flat(pilot)
        assert "A is the earlier one" in flat(pilot)
        assert "keys.toml changes the keys of the list; of these, only" in flat(pilot)
        await pilot.press("escape", "enter")
        await until(pilot, lambda: "NVIDIA H200" in flat(pilot) and "── trust ──" in flat(pilot))
        assert "? help" in shown(pilot)
        await pilot.press("f1")
        await until(pilot, lambda: "words on this screen" in flat(pilot))
        await pilot.press("escape", "escape", "d")
        await until(pilot, lambda: "m marks two runs" in flat(pilot))
        await pilot.press("m", "down", "m")
        assert [row.split()[0] for row in rows(pilot)[:2]] == ["B", "A"]
        await pilot.press("d")
        await until(pilot, lambda: "y copy" in flat(pilot) and "NVIDIA H200" in flat(pilot))
        assert "NVIDIA H100" in flat(pilot)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LabScreen))

    visit(journey, size=(120, 40))


@pytest.mark.slow
def test_it_opens_on_the_newest_run_of_the_lesson_under_the_cursor(past):
    (entry,) = [entry for entry in catalog([]) if entry.name == "precision"]
    entered(replace(past[0], path=str(entry.path)))

    async def journey(pilot):
        await type_in(pilot, "/precision")
        await pilot.press("enter", "h")
        await until(pilot, lambda: pilot.app.screen.query(HistoryList) and cursor(pilot) == 1)

    visit(journey)


@pytest.mark.slow
def test_a_run_whose_file_goes_says_so_and_leaves_the_list(past, tmp_path):
    async def journey(pilot):
        await open_history(pilot)
        for path in tmp_path.glob("*.jsonl"):
            path.unlink()
        await pilot.press("enter")
        await until(pilot, lambda: "No such file" in flat(pilot))
        await pilot.press("escape", "h")
        await until(pilot, lambda: "No run has ended on this machine yet" in flat(pilot))

    visit(journey, size=(120, 40))


@pytest.mark.slow
def test_a_damaged_store_is_read_again_and_says_where_it_is(past):
    runs_folder().mkdir()
    (runs_folder() / "1.jsonl").hardlink_to(past[0].run_file)
    (state_folder() / NAME).write_text("garbage")

    async def journey(pilot):
        await pilot.press("h")
        await until(pilot, lambda: "the store was damaged" in shown(pilot).splitlines()[0])
        await pilot.press("escape")
        await open_history(pilot)
        assert "1 h" not in "".join(rows(pilot)[1:])

    visit(journey, size=(120, 40))


def fill(runs, count):
    """A store of so many runs, a minute apart; every tenth is of another scenario, which only its
    title has.
    """
    now = datetime.now(UTC)
    runs_folder().mkdir(exist_ok=True)
    entered(
        *(
            replace(
                runs[place % 2],
                at=(now - timedelta(minutes=count - place)).isoformat(),
                run_file=str(runs_folder() / f"{place}.jsonl"),
                **({} if place % 10 else {"scenario": "fp16", "path": "fp16.py"}),
                **({} if place % 10 else {"title": f"Number-{place}"}),
            )
            for place in range(count)
        )
    )
    for run in runs:
        Path(run.run_file).unlink(missing_ok=True)
    for place in range(count):
        (runs_folder() / f"{place}.jsonl").touch()


@pytest.mark.slow
def test_while_a_run_measures_no_run_file_is_read(past):
    (state_folder() / NAME).unlink()
    runs_folder().mkdir()

    async def journey(pilot):
        runs = pilot.app.screen.runs
        runs.running = "precision"
        for number in range(6):
            path = runs_folder() / f"20261121T{number:06}-precision-1.jsonl"
            path.hardlink_to(past[0].run_file)
        await pilot.press("h")
        await until(pilot, lambda: "reading 0 of 6" in shown(pilot))
        await pilot.pause(0.3)
        assert "reading 0 of 6" in shown(pilot)
        runs.running = None
        await until(pilot, lambda: "6 runs ·" in shown(pilot) and "reading" not in shown(pilot))

    visit(journey, size=(120, 40))


@pytest.mark.slow
def test_one_scenario_is_searched_for_and_the_cursor_stays_on_its_run(past):
    fill(past, 100)

    async def journey(pilot):
        await open_history(pilot)
        await pilot.press(*["down"] * 9)
        await until(pilot, lambda: cursor(pilot) == 9)
        assert " fp16 " in rows(pilot)[9]
        await type_in(pilot, "/fp16")
        await until(pilot, lambda: "10 of 100 runs" in shown(pilot))
        assert all(" fp16 " in row for row in rows(pilot)[:10])
        assert cursor(pilot) == 0
        await pilot.press("escape")
        await until(pilot, lambda: "100 runs ·" in shown(pilot))
        assert cursor(pilot) == 9, "the cursor stays on its run"

    visit(journey)


@pytest.mark.slow
def test_a_path_that_is_longer_than_a_line_is_shown_as_a_whole(past):
    folder = Path(past[0].run_file).parent / ("folder" * 20)
    folder.mkdir(parents=True)
    long = str(Path(past[0].run_file).rename(folder / "run.jsonl"))
    Path(past[1].run_file).unlink()
    entered(replace(past[0], run_file=long))

    async def journey(pilot):
        await open_history(pilot)
        await until(pilot, lambda: long in "".join(shown(pilot).split("\n")))
        await pilot.press("slash", "x")
        await until(pilot, lambda: "0 of 1 run ·" in shown(pilot).splitlines()[0])
        assert "No run has all of these words" in flat(pilot)

    visit(journey)


def test_the_lines_that_differ_are_shown_and_copied(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for number in range(3):
        path = run_of_source(tmp_path / f"{number}.jsonl", f"x = {number}\ny = 1\n", number)
        entered(run_in(path))

    async def journey(pilot):
        await open_history(pilot)
        await pilot.press("m", "down", "m", "d")
        await until(pilot, lambda: "lines that differ" in flat(pilot))
        assert "1 - x = 1 1 + x = 2" in flat(pilot)
        await pilot.press("y")
        await until(pilot, lambda: "and in 2.compared.md" in flat(pilot))
        text = (tmp_path / "2.compared.md").read_text()
        assert text.startswith("```\n")
        assert "1 - x = 1" in text
        assert "1 + x = 2" in text

    visit(journey, size=(120, 60))


def run_of_source(path, source, number):
    """A recorded run whose scenario's file held this."""
    recording = read_run_file(run_file("precision-h200", path.parent))
    started = recording.events[0]
    job = started.request.job
    subject = replace(job.subject, source=source, source_sha256=f"{number:064}")
    request = replace(started.request, job=replace(job, subject=subject))
    at = f"2026-11-21T00:00:0{number}+00:00"
    return write_run(path, [replace(started, request=request, at=at), *recording.events[1:]])
