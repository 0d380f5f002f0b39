"""The screen over real runs: stopped, broken, edited, watched. What recorded runs can show is in
tests/tui.
"""

from functools import partial

import pytest
from faults import scenario
from journey import QUICK, choose, finish, flat, idle, listed, shown, until
from worker_without_torch import COMMAND

from gpulab.options import Options
from gpulab.session import launch
from gpulab.session.session import Session

LONG = Options(device="cpu", time_s=60, telemetry="off")


@pytest.mark.slow
def test_a_crash_a_stop_and_another_scenario(lab, drive):
    crash = scenario(lab, step="ctypes.string_at(0)")

    async def journey(pilot):
        await finish(pilot)
        assert "bad failed (check" in flat(pilot)
        assert "SIGSEGV" in flat(pilot)
        await pilot.press("escape")
        scenario(lab, step="time.sleep(0.01)")
        pilot.app.screen.runs._defaults = LONG
        await pilot.press("r")
        await until(pilot, lambda: "▸MEASURE" in shown(pilot))
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
        pilot.app.screen.runs._defaults = QUICK
        await choose(pilot, "batched_matmul")
        await finish(pilot)
        assert (
            "claim: performance basics: 31x; quick-start guide: 20-40x; measured here: bmm"
            in flat(pilot)
        )

    drive(journey, crash)


SERVE = """
from gpulab import Scenario
scenario = Scenario("endless")

@scenario.variant
def bad(lab): ...

def serve(channel, job, buffer, position, forks):
    import ctypes
    from gpulab.core.events import StageStarted
    position.move("check", "bad")
    channel.emit(StageStarted(stage="check", variant="bad"))
    channel.flush()
    ctypes.PyDLL(None).sleep(600)  # no Python runs meanwhile, and no handler of a signal
"""


@pytest.mark.slow
def test_quitting_takes_a_step_without_an_end_with_it(lab, drive, monkeypatch):
    monkeypatch.setattr(launch, "Session", partial(Session, command=COMMAND))

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "▸CHECK checking bad" in shown(pilot))
        await pilot.press("q", "q")
        await until(pilot, lambda: not pilot.app.is_running, within=5)
        assert lab.none_left(within=1)

    drive(journey, lab.write("endless.py", SERVE))


@pytest.mark.slow
def test_a_driver_that_hangs_stalls_nothing(lab, driver, drive, monkeypatch):
    """Telemetry comes from the stand-in driver; the run is quit in its midst."""
    for name in ("LD_LIBRARY_PATH", "STANDIN"):
        monkeypatch.setenv(name, lab.env[name])

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "10 %  ⣀⣀" in shown(pilot))
        driver("slow=600000")  # longer than a test may take: nothing here waits for it
        await until(pilot, lambda: "stale: nothing for" in shown(pilot))
        await pilot.press("1")
        assert "good" in shown(pilot)
        await pilot.press("3")
        assert "stale: nothing for" in shown(pilot)
        await pilot.press("q", "q")
        await until(pilot, lambda: not pilot.app.is_running)
        assert lab.none_left()

    settings = Options(device="cpu", time_s=60, telemetry="0")
    drive(journey, scenario(lab, step="time.sleep(0.01)"), settings=settings)
