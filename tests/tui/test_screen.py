"""The screen as a person uses it, in a real run: keys in, text out."""

import time
from dataclasses import replace

import pytest
from faults import CASES, ODD, scenario
from journey import QUICK, choose, finish, flat, idle, shown, until

from gpulab.run.request import Settings
from gpulab.tui.widgets.scenario_list import ScenarioList


@pytest.mark.parametrize("name", CASES)
def test_after_a_fault_the_screen_says_what_happened_and_goes_on(lab, drive, name):
    where, statement, kind, stage, message = CASES[name]

    async def journey(pilot):
        await finish(pilot)
        assert f"bad failed ({stage}" in flat(pilot)
        assert message in flat(pilot)
        await pilot.press("4", "home")
        assert f"bad: {kind}, " in flat(pilot)
        await pilot.press("escape", "1")
        assert "gpulab · ready, on cpu fault good bad file" in flat(pilot)

    drive(journey, scenario(lab, **{where: statement}))


@pytest.mark.parametrize("name", ODD)
def test_what_a_scenario_does_to_the_lab_is_on_screen(lab, drive, name):
    where, statement, message, timeout_s = ODD[name]

    async def journey(pilot):
        await finish(pilot)
        seen = flat(pilot)
        await pilot.press("4", "home")
        for _ in range(60):
            seen += flat(pilot)
            await pilot.press("pagedown")
        assert message in seen
        assert lab.none_left(within=1)

    settings = replace(QUICK, timeout_s=timeout_s, time_s=None if timeout_s else QUICK.time_s)
    drive(journey, scenario(lab, **{where: statement}), settings=settings)


def test_after_a_crash_another_scenario_runs(lab, drive):
    async def journey(pilot):
        await finish(pilot)
        assert "SIGSEGV" in flat(pilot)
        await pilot.press("escape")
        await choose(pilot, "batched_matmul")
        await finish(pilot)
        assert "faster" in flat(pilot)
        assert "claim: 31x, 20-40x on a GPU; measured here: bmm" in flat(pilot)

    drive(journey, scenario(lab, step="ctypes.string_at(0)"))


def test_a_run_is_watched_stopped_and_run_again(lab, drive):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "control" in shown(pilot) and "so far" in shown(pilot))
        assert "fault · epoch" in shown(pilot)
        await pilot.press("enter")
        assert "is running: Esc stops it" in shown(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: idle(pilot), within=5)
        assert "interrupted: what was measured before is in the run file" in flat(pilot)
        assert lab.none_left(within=1)
        await pilot.press("enter")
        await until(pilot, lambda: "round" in shown(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: idle(pilot), within=5)

    drive(journey, scenario(lab, step="time.sleep(0.01)"), settings=Settings(device="cpu", time_s=60))


@pytest.mark.parametrize("step", ["exec('while True: pass')", "x = torch.rand(9000, 9000); x @ x @ x @ x @ x"])
def test_quitting_takes_a_step_without_an_end_with_it(lab, drive, step):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "check bad" in shown(pilot))
        await pilot.press("q")
        await until(pilot, lambda: not pilot.app.is_running, within=5)
        assert lab.none_left(within=1)

    drive(journey, scenario(lab, step=step))


def test_both_sizes_show_what_they_have_room_for(drive):
    async def narrow(pilot):
        names = pilot.app.screen.query_one(ScenarioList)
        assert names.size.width == 80
        await pilot.press("1")
        assert not names.display
        assert "hands all forty over in one call" in flat(pilot)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: names.display)
        assert "hands all forty over in one call" in flat(pilot)
        assert "--set n=1024" in flat(pilot)

    drive(narrow)


def test_a_broken_file_is_listed_and_explained(lab, drive):
    broken = lab.write("broken.py", "from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n")

    async def journey(pilot):
        await pilot.press("enter")
        assert "broken.py, line 2: Scenario knows no 'spede'" in flat(pilot)
        await pilot.press("1")
        assert "line 2: Scenario knows no 'spede'; it takes needs" in flat(pilot)

    drive(journey, broken)


def test_a_file_that_is_mended_runs_without_leaving(lab, drive):
    path = lab.write("mine.py", "from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n")
    good = scenario(lab).read_text()

    async def journey(pilot):
        await pilot.press("enter")
        assert "knows no 'spede'" in flat(pilot)
        path.write_text(good)
        await finish(pilot)
        assert "same" in flat(pilot) or "inconclusive" in flat(pilot)
        path.write_text(good.replace("DATA, 2", "DATA, 3", 1))
        await finish(pilot)
        assert "bad wrong" in flat(pilot)
        await pilot.press("l")
        names = pilot.app.screen.query_one(ScenarioList)
        assert "wrong" in str(names.get_option("mine").prompt)

    drive(journey, path)


def test_the_list_is_reached_while_something_runs(lab, drive):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: not idle(pilot))
        await pilot.press("l", "up", "1")
        assert not idle(pilot)
        assert "fault.py" not in shown(pilot)
        await pilot.resize_terminal(120, 40)
        await pilot.press("tab")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert pilot.app.focused is not None
        await pilot.press("q")
        await until(pilot, lambda: not pilot.app.is_running, within=5)

    drive(journey, scenario(lab, step="time.sleep(0.01)"), settings=Settings(device="cpu", time_s=60))


def test_texts_of_a_scenario_are_no_markup(lab, drive):
    path = lab.write(
        "texts.py",
        '"""[red]Title[/red]: x.\n\n[bold]lesson \\x1b[31m."""\nfrom gpulab import Scenario, Work\nimport torch\n'
        "scenario = Scenario('[i]topic')\n@scenario.variant\ndef one(lab):\n    '''[b]summary.'''\n"
        "    print('[blink]printed[/]')\n    x = torch.rand(9)\n    return Work(lambda: x * 2, inputs=x)\n",
    )

    async def journey(pilot):
        await pilot.press("1")
        assert "[bold]lesson ." in flat(pilot)
        assert "[b]summary." in flat(pilot)
        await finish(pilot)
        await pilot.press("4")
        assert "[blink]printed[/]" in flat(pilot)

    drive(journey, path)


def test_ascii_reaches_every_cell(drive):
    async def journey(pilot):
        await finish(pilot)
        assert shown(pilot).isascii()
        assert "us" in shown(pilot)

    drive(journey, ascii_only=True)


@pytest.fixture
def watched(lab, driver, drive, monkeypatch):
    """The same, with the stand-in driver behind it: `watched(journey)`; `driver` says how it behaves."""
    for name in ("LD_LIBRARY_PATH", "STANDIN"):
        monkeypatch.setenv(name, lab.env[name])

    def watched(journey):
        drive(
            journey,
            scenario(lab, step="time.sleep(0.01)"),
            settings=Settings(device="cpu", time_s=60, telemetry="0"),
        )

    return watched


def test_telemetry_lives_in_two_rows_beside_the_run(watched):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "SM ▁▁" in shown(pilot))
        assert "tensor ▃▃" in shown(pilot)
        assert "10% ^10" in shown(pilot)
        assert "410/700 W" in shown(pilot)
        assert "clocks ok" in shown(pilot)
        await pilot.press("q")

    watched(journey)


def test_a_driver_that_is_slow_gets_a_badge_and_stalls_nothing(watched, driver):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "SM ▁" in shown(pilot))
        driver("slow=4000")
        await until(pilot, lambda: "stale: nothing for" in shown(pilot), within=10)
        before = time.monotonic()
        await pilot.press("1")
        assert "good" in shown(pilot)
        await pilot.press("2")
        assert time.monotonic() - before < 2
        await pilot.press("q")
        await until(pilot, lambda: not pilot.app.is_running, within=6)

    watched(journey)


def test_a_lost_gpu_stays_on_screen_with_its_history(watched, driver):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "SM ▁▁" in shown(pilot))
        driver("lost=0")
        await until(pilot, lambda: "GPU lost" in shown(pilot), within=10)
        driver("")
        await pilot.pause(1)
        assert "GPU lost" in shown(pilot)
        assert "SM ▁▁" in shown(pilot)
        await pilot.press("q")

    watched(journey)


def test_on_a_cpu_the_rows_show_the_host(drive):
    async def journey(pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "worker CPU" in shown(pilot))
        assert "no GPU telemetry: the run is on the CPU" in flat(pilot)
        await pilot.press("q")

    drive(journey, settings=Settings(device="cpu", time_s=3), size=(120, 40))
