"""A replay without the screen prints what the run printed, from its file alone, on any machine."""

import json
import subprocess
import sys

import pytest
from recorded import recorded_path
from scripted import SCENARIO, CommandLine

_BARE = """
import os, signal, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "fcntl", "resource", "termios", "pynvml"}:
            raise ImportError(f"{name} is not for this system")

for module in ("torch", "fcntl", "resource", "termios", "pynvml"):
    assert module not in sys.modules
sys.meta_path.insert(0, Refuse())
for name in ("pipe2", "fork", "pidfd_open", "sched_getaffinity", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
for name in ("SIGHUP", "SIGQUIT", "SIGTSTP", "SIGALRM", "alarm", "pidfd_send_signal"):
    delattr(signal, name)
from gpulab.cli import main
sys.exit(main())
"""
"""A system that is no Linux, without torch."""


@pytest.fixture
def command(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("of_the_run", "of_both", "code"),
    [
        ((), (), 0),
        (("--fail-below", "100x"), ("--raw", "--checklist", "--verbose"), 5),
        (("--from-start",), ("--markdown",), 0),
        (("--set", "fails_at=100"), ("--top", "3"), 3),
    ],
)
def test_a_replay_prints_what_the_run_printed_with_its_exit_code(
    command, of_the_run, of_both, code
):
    quiet = ("--device", "cpu", "--telemetry", "off", "--output", "run.jsonl")
    run = command("--run", "mine.py", *quiet, *of_the_run, *of_both, "--json", "run.json")
    replay = command("--replay", "run.jsonl", *of_both, "--json", "replay.json")
    assert replay.stdout == run.stdout
    assert (replay.code, run.code) == (code, code)
    assert replay.result == run.result
    assert replay.stderr.startswith("recorded on ")


def test_json_on_stdout_and_what_cannot_be_replayed(command, tmp_path):
    name = "h200/sync_every_step"
    both = command("--replay", name, "--json")
    assert json.loads(both.stdout)["runs"][0]["device"]["name"] == "NVIDIA H200"
    assert "sync_every_step · " in both.stderr
    (tmp_path / "text.jsonl").write_text("hello\n")
    for what, problem in (
        ("text.jsonl", "text.jsonl is not a run file"),
        ("gone.jsonl", "there is no file gone.jsonl"),
        ("nothing_of_that_name", "there is no run named nothing_of_that_name"),
    ):
        refused = command("--replay", what)
        assert (refused.code, refused.stdout) == (2, "")
        assert problem in refused.stderr
    assert "  arithmetic_intensity " in command("--replay").stdout


def test_a_system_without_torch_and_linux_prints_a_run_of_a_gpu(lab):
    path = recorded_path("h200/pinned_memory")
    arguments = (sys.executable, "-c", _BARE, "--replay", path, "--verbose")
    done = subprocess.run(
        arguments, env=lab.env, cwd=lab.folder, capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith("recorded on NVIDIA H200 · torch 2.11.0+cu130 · driver 580.")
    assert "host to device pinned" in done.stdout
    assert not (lab.folder / "state").exists()
