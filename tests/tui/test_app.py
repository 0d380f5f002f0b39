"""The screen over recorded runs: keys in, text out, without a process."""

import pytest
from found import finding
from journey import Tape, choose, flat, idle, listed, shown, until, visit
from recorded import recorded_path, run_file

from gpulab.core.events import RunStarted, Samples, SoloRun, StageStarted
from gpulab.options import UsageError
from gpulab.session.run import FileSource
from gpulab.session.saved import entry_of

CASES = (
    # recorded run, its result, its log, its mark in the list
    (
        "raises",
        "bad failed (check, line 13): ValueError: boom",
        "bad: error, ValueError: boom",
        "failed",
    ),
    ("killed", "interrupted: incomplete run file: killed or still running", "999", "stopped"),
    (
        "checks",
        "stale wrong: ignores its inputs",
        "it printed nothing",
        "wrong",
    ),
    (
        "standin-shared",
        "another process on the GPU (process_api 1): 90 of 90 blocks dropped",
        "it printed nothing",
        "invalid",
    ),
    (
        "function-dies-profiled",
        "hangs: profiling failed: the worker process exited with code 7: os._exit, or an exit in a "
        "native library",
        "it printed nothing",
        "timed",
    ),
)


def test_after_each_run_the_screen_says_what_happened_and_goes_on(hostile_scenario, tmp_path):
    names = iter(name for name, *_ in CASES)

    async def journey(pilot):
        for _, result, log, mark in CASES:
            await pilot.press("r")
            await until(pilot, lambda result=result: idle(pilot) and result in flat(pilot))
            await pilot.press("5")
            await until(pilot, lambda log=log: log in flat(pilot))
            assert mark in next(line for line in listed(pilot) if "recorded" in line)
        await choose(pilot, "batched_matmul")
        await pilot.press("enter")
        assert "pays for every launch" in flat(pilot)

    def starter(entry, settings):
        return FileSource(run_file(f"{next(names)}", tmp_path))

    visit(journey, hostile_scenario, size=(140, 50), starter=starter)


def test_going_back_stops_nothing_a_second_run_waits_and_enter_keeps_the_result(
    hostile_scenario, tmp_path
):
    tape = Tape(run_file("smoke", tmp_path), lambda event: isinstance(event, Samples))
    starts = []

    def starter(entry, settings):
        starts.append(entry.name)
        return tape

    async def journey(pilot):
        await pilot.press("enter")
        assert "[bold]lesson ." in flat(pilot)
        await pilot.press("escape", "r")
        await until(pilot, lambda: "so far" in shown(pilot))
        await pilot.press("escape", "escape")
        assert listed(pilot)[1].startswith(">recorded")
        await until(pilot, lambda: ", round " in shown(pilot))
        await pilot.press("r")
        assert "recorded is running: s s stops it" in shown(pilot)
        await pilot.press("s")
        assert "s again stops recorded" in shown(pilot)
        await pilot.press("q")
        assert "q again stops recorded and quits" in shown(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot))
        await pilot.press("3")
        await until(pilot, lambda: "rounds of paired" in flat(pilot))
        await pilot.press("escape", "enter")
        await until(pilot, lambda: "rounds of paired" in flat(pilot))
        assert starts == ["recorded"]

    visit(journey, hostile_scenario, starter=starter)


def test_a_run_that_cannot_start_says_so(hostile_scenario):
    answers = [UsageError("--threads 9: this process may use 2 cores"), finding("no_gpu")]

    def starter(entry, settings):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def journey(pilot):
        await pilot.press("r")
        assert "this process may use 2 cores" in shown(pilot)
        await pilot.press("r")
        assert "no NVIDIA device in this machine" in shown(pilot)
        assert "gpulab" not in shown(pilot).splitlines()[0]

    visit(journey, hostile_scenario, starter=starter)


@pytest.mark.slow
def test_the_last_stages_of_a_healthy_run_are_not_stale(hostile_scenario, tmp_path):
    """Sampling has ended by then: this was red for as long as the profile took."""
    tape = Tape(run_file("healthy", tmp_path), _profiling)

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: "▸PROFILE" in shown(pilot))
        await pilot.pause(0.6)
        assert "stale" not in shown(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot))

    visit(journey, hostile_scenario, starter=lambda entry, settings: tape)


def _profiling(event):
    return isinstance(event, StageStarted) and event.stage == "profile"


def test_the_roofline_is_there_while_the_run_goes_on_one_type_of_numbers_at_a_time(
    hostile_scenario, tmp_path
):
    tape = Tape(run_file("precision-h100-1", tmp_path), lambda event: isinstance(event, SoloRun))

    async def journey(pilot):
        await pilot.press("4")
        assert "r runs it" in shown(pilot)
        await pilot.press("r", "4")
        await until(pilot, lambda: "FLOP/byte" in shown(pilot))
        assert not idle(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot))
        drawn = set()
        for _ in range(4):
            drawn.add(
                next(line for line in shown(pilot).splitlines() if "ridge" in line)
                .split(",")[0]
                .split()[-1]
            )
            await pilot.press("f")
        assert {"fp32", "tf32", "fp16/bf16", "fp8"} == drawn
        await pilot.press("end")
        assert "E fp8: " in shown(pilot)

    visit(journey, hostile_scenario, starter=lambda entry, settings: tape)


def test_where_runs_are_only_looked_at_every_key_that_would_run_something_says_so():
    run = FileSource(recorded_path("h200/batched_matmul"))
    entry = entry_of(next(event.request for event in run.take() if isinstance(event, RunStarted)))
    reason = "a run of another is watched here: it is read only"

    async def journey(pilot):
        await until(pilot, lambda: "── limits" in flat(pilot))
        assert "run" not in pilot.app.screen.footer_keys()
        for key in "rRtpSgsew":
            await pilot.press("escape", key)
            assert reason in shown(pilot).splitlines()[0], key
        await pilot.press("2")
        await until(pilot, lambda: "@scenario.variant" in flat(pilot))

    visit(
        journey,
        starter=lambda *_: FileSource(run.path),
        entries=[entry],
        opens=entry.name,
        read_only=reason,
    )
