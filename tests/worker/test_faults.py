"""Whatever a scenario does, the lab says what happened and where, keeps what was measured, and leaves nothing."""

import os
import signal
import time

import pytest
from faults import CASES, GRANDCHILD, LATE, line_of, scenario

from gpulab.run.record import read


def failure(finished, variant="bad"):
    return next(one for one in reversed(finished.state.failures) if one.variant == variant)


@pytest.mark.parametrize("name", CASES)
def test_a_failing_variant_is_named_with_stage_and_line(lab, name):
    where, statement, kind, stage, message = CASES[name]
    path = scenario(lab, **{where: statement})
    finished = lab.run(path)
    assert finished.code == 3
    found = failure(finished)
    assert (found.kind, found.stage) == (kind, stage)
    assert message in found.message
    assert finished.variant("bad")["status"] == "failed"
    assert "bad failed" in finished.stderr
    if kind in ("error", "exit", "crash") and name not in ("os._exit", "wrong return"):
        assert found.line == line_of(path, statement)
    if kind != "error":
        return
    assert finished.variant("good")["status"] == "ok"
    assert finished.variant("good")["time_s"]["median"] > 0


def test_a_crash_in_the_measurement_keeps_the_completed_pairs(lab):
    path = scenario(lab, step=LATE + "ctypes.string_at(0)", tail=THIRD)
    finished = lab.run(path, time_s="2")
    assert finished.code == 3
    assert failure(finished).kind == "crash"
    assert failure(finished).line == line_of(path, "string_at")
    assert "Segmentation fault" in failure(finished).traceback
    assert finished.run["method"]["epochs"] >= 8
    # What the worker had not sent yet comes from its warden, just before the report of its death.
    kinds = [type(event).__name__ for event in read(finished.run_file).events]
    assert kinds[kinds.index("WorkerExited") - 1] == "Samples"
    assert finished.variant("third")["status"] == "ok"
    assert finished.verdict("third") is not None
    assert finished.verdict("bad") is None


THIRD = """
@scenario.variant
def third(lab):
    out = torch.empty_like(DATA)
    return Work(lambda: torch.mul(DATA, 2, out=out), inputs=DATA)
"""


@pytest.mark.parametrize("ignore", [False, True], ids=["plain", "ignores SIGTERM"])
def test_an_endless_step_ends_at_the_timeout(lab, ignore):
    loop = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " * ignore + "exec('while True: pass')"
    path = scenario(lab, step=loop)
    finished = lab.run(path, "--timeout", "6")
    assert finished.code == 3
    assert (failure(finished).kind, failure(finished).stage) == ("timeout", "check")
    assert failure(finished).line == line_of(path, "while True")
    assert "raise --timeout" in finished.stderr


def test_a_long_native_operation_ends_at_the_timeout_with_its_line(lab):
    path = scenario(lab, step="x = torch.rand(9000, 9000); x @ x @ x @ x @ x")
    finished = lab.run(path, "--timeout", "6")
    assert failure(finished).kind == "timeout"
    assert failure(finished).line == line_of(path, "9000")


def test_a_syntax_error_is_shown_with_its_line(lab):
    path = lab.write("broken.py", "from gpulab import Scenario\n\nscenario = Scenario('x'\n")
    finished = lab.run(path)
    assert finished.code == 3
    assert "line 3" in finished.stderr
    assert "'(' was never closed" in finished.stderr


def test_a_syntax_error_in_an_imported_file_is_shown_with_the_line_of_the_import(lab):
    lab.write("helper.py", "def f(:\n")
    path = scenario(lab, tail="import helper\n")
    finished = lab.run(path)
    assert finished.code == 3
    assert finished.state.failures[0].stage == "load"
    assert finished.state.failures[0].line == line_of(path, "import helper")
    assert "helper.py" in finished.stderr


def test_a_flood_of_output_keeps_its_first_and_last_lines(lab):
    path = scenario(lab, build="if builds == 1: print(*range(200_000), sep=chr(10))")
    finished = lab.run(path)
    assert finished.code == 0
    logs = finished.state.log
    lines = [line for log in logs for line in log.lines]
    assert lines[0] == "0"
    assert lines[-1] == "199999"
    assert len(lines) == 2000
    assert sum(log.skipped for log in logs) == 198_000


def test_binary_output_and_escape_sequences_never_reach_the_terminal(lab):
    raw = (
        r"os.write(1, b'\x1b[2Jred\x1b]0;title\x07\xff\xfe\x00\x9b31m\n'); raise ValueError('\x1b[31mred\x07 [bold]x')"
    )
    path = scenario(lab, build=raw)
    finished = lab.run(path)
    assert finished.code == 3
    text = finished.stderr + finished.stdout + "".join(line for log in finished.state.log for line in log.lines)
    assert not any((ord(mark) < 32 and mark not in "\n\t") or 127 <= ord(mark) < 160 for mark in text)
    assert "[bold]x" in finished.stderr
    assert any("red" in line for log in finished.state.log for line in log.lines)


@pytest.mark.parametrize("own_session", [False, True], ids=["same session", "own session"])
def test_a_grandchild_left_behind_is_stopped(lab, own_session):
    path = scenario(lab, build=f"if builds == 1: {GRANDCHILD.format(own_session)}")
    finished = lab.run(path)
    assert finished.code == 0
    assert lab.none_left(within=0.5)
    assert any("left 1 processes behind" in text for text in finished.run["warnings"])


def test_stray_descriptors_may_be_closed(lab):
    finished = lab.run(scenario(lab, build="os.closerange(3, 256)"))
    assert finished.code == 0


def test_closing_the_event_pipe_is_named(lab):
    finished = lab.run(scenario(lab, build="os.closerange(3, 4096)"))
    assert finished.code == 3
    assert "closed the lab's event pipe" in finished.stderr


def test_writing_to_every_descriptor_garbles_nothing_that_is_measured(lab):
    write = "[_write(fd) for fd in range(3, 1024)]"
    tail = (
        "def _write(fd):\n    try:\n        os.write(fd, b'garbage' + bytes([10]))\n    except OSError:\n        pass\n"
    )
    finished = lab.run(scenario(lab, build=write, tail=tail))
    assert finished.code == 0
    assert any("were not the lab's" in text for text in finished.run["warnings"])
    assert finished.verdict("bad") is not None


def test_changing_the_directory_while_building_is_refused_and_undone(lab):
    finished = lab.run(scenario(lab, build="os.chdir('/')"))
    assert finished.code == 7
    assert "os.chdir" in finished.variant("bad")["reason"]
    assert finished.variant("good")["status"] == "ok"


def test_changing_the_directory_at_import_harms_nothing(lab):
    assert lab.run(scenario(lab, tail="os.chdir('/')\n")).code == 0


def test_a_fork_that_comes_back_into_the_lab_measures_nothing(lab):
    finished = lab.run(scenario(lab, build="if builds == 1: os.fork()"))
    assert finished.code == 0
    assert finished.verdict("bad") is not None


def test_no_worker_survives_its_killed_parent(lab):
    path = scenario(lab, build=GRANDCHILD.format(True), step="time.sleep(0.01)")
    process = lab.start("--run", path, "--device", "cpu", "--output", "run.jsonl")
    wait_for_measuring(lab)
    process.kill()
    process.communicate()
    assert lab.none_left()
    recording = read(lab.folder / "run.jsonl")
    assert recording.garbled == []
    assert recording.events


def test_ctrl_c_ends_the_run_and_keeps_its_file(lab):
    path = scenario(lab, step="time.sleep(0.01)")
    process = lab.start("--run", path, "--device", "cpu", "--output", "run.jsonl")
    wait_for_measuring(lab)
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert lab.none_left(within=0.5)
    recording = read(lab.folder / "run.jsonl")
    assert recording.events[-1].outcome == "cancelled"


def wait_for_measuring(lab):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        file = lab.folder / "run.jsonl"
        if file.exists() and b'"type":"Planned"' in file.read_bytes():
            return
        time.sleep(0.05)
    pytest.fail("the run never began to measure")
