"""`--guide claims`: what each source says beside what was measured, here or in a recording, and no
figure of anything else.
"""

import re
from datetime import UTC, datetime, timedelta

import pytest
from journey import flat, shown, until, visit
from recorded import recorded_path
from scripted import CommandLine

from gpulab.catalog.catalog import find
from gpulab.catalog.recordings import recorded_name, recordings
from gpulab.core.host import host_name
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.features.claims.runs import when_not
from gpulab.headless.scripting import load
from gpulab.report.past import PastComparison, PastRun
from gpulab.session.run_files import runs_folder
from gpulab.session.store import Store
from gpulab.tui.screens.page import Page

H100 = Device(kind="cuda", name="NVIDIA H100", uuid="GPU-1")


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    command_line = CommandLine(lab, monkeypatch, capsys)
    runs_folder().mkdir(parents=True)
    return command_line


def enter(name, variant, against, speedup, *, days=3, **changes):
    """A run of a lesson in the store, so many days ago."""
    entry = find(name)
    path = runs_folder() / f"{name}-{days}-{speedup}.jsonl"
    path.write_text("x")
    compared = PastComparison(
        variant=variant,
        against=against,
        verdict=Verdict.FASTER,
        measured=speedup,
        low=speedup - 0.25,
        high=speedup + 0.25,
    )
    usual = {
        "at": (datetime.now(UTC) - timedelta(days=days)).isoformat(),
        "host": host_name(),
        "run_file": str(path),
        "scenario": name,
        "path": str(entry.path),
        "source_sha256": entry.sha256,
        "params": entry.scenario.params,
        "device": H100,
        "outcome": Conclusion.MEASURED,
        "exit_code": ExitCode.MEASURED,
        "comparisons": (compared,),
        "best": variant,
    }
    with Store() as store:
        store.add_run(PastRun(**{**usual, **changes}))


def row(text, name):
    """The lines of a lesson, without the spaces at their ends."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = next(place for place, line in enumerate(lines) if line.startswith(f"{name} "))
    more = next(
        (place for place in range(first + 1, len(lines)) if not lines[place].startswith("  ")),
        len(lines),
    )
    return lines[first:more]


def test_without_a_run_here_figures_are_of_recordings_and_say_so(lab):
    process = lab.call("--guide", "claims")
    assert process.code == 0
    _, _, table = process.stdout.partition("── data movement")
    assert max(map(len, process.stdout.splitlines())) <= 80
    assert len(re.findall("measured here ──", table)) == 6
    assert " here, " not in table
    lessons = [line for line in table.splitlines() if re.match(r"\w+ {2,}", line)]
    recorded = {line.split()[0] for line in lessons if ", recorded" in line}
    assert recorded == {recorded_name(path) for path in recordings()}
    for line in lessons:
        name = line.split()[0]
        assert name in recorded or line.rstrip().endswith(f"  gpulab --run {name}")
    figures, *words = row(table, "batched_matmul")
    bmm = load(recorded_path("h200/batched_matmul")).comparison("bmm").speedup
    figure, low, high = (f"{end:.3g}" for end in (bmm.value, bmm.low, bmm.high))
    assert re.search(rf"{figure}x +{low} to {high} +H200, recorded +\+1 -7$", figures)
    assert words == [
        "  measured  bmm over loop: faster",
        "  claim     performance basics: 31x; quick-start guide: 20-40x",
        "  when not  Where one matmul fills the device by itself, the loop is as fast.",
    ]


def test_the_newest_run_here_stands_in_place_of_the_recording(gpulab, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    enter("batched_matmul", "bmm", "loop", 5.0, days=9)
    enter("batched_matmul", "graphed", "loop", 2.5, days=3)
    enter("batched_matmul", "bmm", "loop", 77.0, days=2, smoke=True)
    enter("batched_matmul", "bmm", "loop", 78.0, days=1, outcome=Conclusion.FAILED)
    enter("batched_matmul", "bmm", "loop", 79.0, days=1, host="another machine")
    enter("batched_matmul", "bmm", "loop", 80.0, days=1, path="/lab/batched_matmul.py")
    enter("matmul_epilogue", "compiled", "eager", 1.5, days=0, params={"m": 77}, quick=True)
    text = gpulab("--guide", "claims", "--ascii").stdout
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120
    figures, *_ = row(text, "batched_matmul")
    speedup, rest = figures.split("GPU here")
    assert speedup.split() == ["batched_matmul", "2.50x", "2.25", "to", "2.75"]
    assert re.fullmatch(r", 3 d +\+\d+ -\d+ +graphed over loop: faster", rest)
    figures, *_ = row(text, "matmul_epilogue")
    speedup, rest = figures.split("GPU here")
    assert speedup.split() == ["matmul_epilogue", "1.50x*", "1.250", "to", "1.750"]
    assert re.fullmatch(r", now +\+\d+ -\d+ +compiled over eager: faster, with m=77", rest)
    assert "-- launch and host overhead ---" in text
    assert re.search(r"- 1 of \d+ measured here --", text)


def test_where_it_gains_nothing_is_a_sentence_of_the_lesson():
    assert when_not("Title\n\n## Where the step comes\n\nEarly.\n") == ""
    part = "## Where it gains less\n\nOn `two` cores,\nas here. More.\n\n## Then\n\nWhere not.\n"
    assert when_not(f"Title\n\n{part}") == "On two cores, as here."
    assert when_not("## Where it ends\n\nHere: x.\n\nWhere y: z.\n") == "Where y."


def test_the_screen_shows_it_as_a_page(gpulab):
    async def journey(pilot):
        commands = pilot.app.get_system_commands(pilot.app.screen)
        next(each for each in commands if each.title == "claims of the sources").callback()
        await until(pilot, lambda: isinstance(pilot.app.screen, Page))
        await until(pilot, lambda: "claims of the sources" in shown(pilot))
        assert "H200, recorded" in flat(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Page))

    visit(journey)
