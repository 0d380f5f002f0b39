"""The screen over real runs: stopped, broken, edited, watched. What recorded runs can show is in tests/screen."""

import time

import pytest
from faults import scenario
from journey import QUICK, choose, finish, flat, idle, listed, shown, until

from gpulab.session.settings import Settings

LONG = Settings(device="cpu", time_s=60, telemetry="off")


def test_a_crash_a_stop_and_another_scenario(lab, drive):
    crash = scenario(lab, step="ctypes.string_at(0)")

    async def journey(pilot):
        await finish(pilot)
        assert "bad failed (check" in flat(pilot)
        assert "SIGSEGV" in flat(pilot)
        await pilot.press("escape")
        scenario(lab, step="time.sleep(0.01)")
        pilot.app.screen._settings = LONG
        await pilot.press("r")
        await until(pilot, lambda: "control" in shown(pilot) and "so far" in shown(pilot))
        assert "fault · epoch" in shown(pilot)
        await pilot.press("escape", "escape")
        assert not idle(pilot)
        await pilot.press("s")
        assert not idle(pilot)
        await pilot.press("s")
        await until(pilot, lambda: idle(pilot), within=10)
        await pilot.press("enter")
        assert "interrupted: stopped while measuring" in flat(pilot)
        assert lab.none_left(within=1)
        await pilot.press("escape")
        assert any("fault" in line and "stopped" in line for line in listed(pilot))
        pilot.app.screen._settings = QUICK
        await choose(pilot, "batched_matmul")
        await finish(pilot)
        assert "claim: 31x, 20-40x on a GPU; measured here: bmm" in flat(pilot)

    drive(journey, crash)


@pytest.mark.parametrize("step", ["exec('while True: pass')", "x = torch.rand(9000, 9000); x @ x @ x @ x @ x"])
def test_quitting_takes_a_step_without_an_end_with_it(lab, drive, step):
    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "check bad" in shown(pilot))
        await pilot.press("q")
        await until(pilot, lambda: not pilot.app.is_running, within=5)
        assert lab.none_left(within=1)

    drive(journey, scenario(lab, step=step))


def test_a_file_that_is_fixed_runs_without_leaving(lab, drive):
    path = lab.write("edited.py", "from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n")
    good = scenario(lab).read_text()

    async def journey(pilot):
        await pilot.press("r")
        assert "unexpected keyword 'spede'" in flat(pilot)
        path.write_text(good.replace("DATA, 2", "DATA, 3", 1))
        await finish(pilot)
        assert "bad wrong" in flat(pilot)
        await pilot.press("escape")
        assert any("edited" in line and "wrong" in line for line in listed(pilot))

    drive(journey, path)


def test_a_driver_that_is_slow_or_loses_its_gpu_stalls_nothing(lab, driver, drive, monkeypatch):
    for name in ("LD_LIBRARY_PATH", "STANDIN"):
        monkeypatch.setenv(name, lab.env[name])

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "SM ▁▁" in shown(pilot))
        driver("slow=4000")
        await until(pilot, lambda: "stale: nothing for" in shown(pilot), within=10)
        before = time.monotonic()
        await pilot.press("1")
        assert "good" in shown(pilot)
        await pilot.press("2")
        assert time.monotonic() - before < 2
        driver("lost=0")
        await until(pilot, lambda: "GPU lost" in shown(pilot), within=15)
        driver("")
        await pilot.pause(1)
        assert "GPU lost" in shown(pilot)
        assert "SM ▁▁" in shown(pilot)
        await pilot.press("q")
        await until(pilot, lambda: not pilot.app.is_running, within=6)

    settings = Settings(device="cpu", time_s=60, telemetry="0")
    drive(journey, scenario(lab, step="time.sleep(0.01)"), settings=settings)
