"""`--compare -- PROGRAM -- PROGRAM`: two programs run in turn."""

import json
import signal
import sys

import psutil
import pytest
from conftest import wait_for

SLEEPS = "import time; time.sleep({seconds}); print({prints!r})"


def program(prints="done", seconds=0.0):
    return ["--", sys.executable, "-S", "-c", SLEEPS.format(seconds=seconds, prints=prints)]


@pytest.mark.slow
def test_the_program_that_takes_longer_is_slower(lab):
    words = [*program(), *program(prints="other", seconds=0.2)]
    finished = lab.call_over(None, "--compare", "--json", "--fail-if-slower", "3%", *words)
    assert finished.code == 5
    (comparison,) = json.loads(finished.stdout)["comparisons"]
    (row,) = comparison["rows"]
    assert row["verdict"] == "slower"
    assert row["pairing"] == "paired"
    assert row["b"]["value"] > 0.2
    (finding,) = comparison["findings"]
    assert (finding["code"], finding["values"]) == ("prints_differ", {"line": 1})


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([*program(), "--", "false"], 3, "exit code 1"),
        ([*program(), "--", "sh", "-c", "kill -9 $$"], 3, "killed by signal 9"),
        (["--timeout", "1", *program(), *program(seconds=3002.0)], 3, "no end within 1 s"),
        ([*program(), "--", "no-such-program"], 2, "no such program"),
        (program(), 2, "takes two programs"),
        (["--device", "cpu", *program(), *program()], 2, "takes its own arguments"),
    ],
    ids=[
        "one fails",
        "one is killed",
        "one hangs",
        "one is not there",
        "one alone",
        "a flag of a step",
    ],
)
def test_what_cannot_be_compared_is_said(lab, words, code, said):
    finished = lab.call_over(None, "--compare", *words)
    assert finished.code == code
    assert said in finished.stdout + finished.stderr


def test_an_interrupt_ends_both(lab):
    process = lab.start("--compare", *program(), *program(seconds=3000.0))
    sleeping = "--", sys.executable, "-S", "-c", SLEEPS.format(seconds=3000.0, prints="done")

    def runs():
        return [each for each in psutil.process_iter(["cmdline"]) if is_it(each, sleeping[1:])]

    wait_for(runs)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.startswith(b"interrupted after 0 pairs")
    assert not runs()


def test_a_program_dies_with_the_command(lab):
    """Killed, it can end nothing itself."""
    process = lab.start("--compare", *program(), *program(seconds=3001.0))
    command = [sys.executable, "-S", "-c", SLEEPS.format(seconds=3001.0, prints="done")]

    def runs():
        return [each for each in psutil.process_iter(["cmdline"]) if is_it(each, command)]

    wait_for(runs)
    process.kill()
    process.communicate(timeout=30)
    wait_for(lambda: not runs())


def is_it(process, command):
    """Whether it is a process of this command, alive."""
    return process.info["cmdline"] == list(command) and process.status() != "zombie"
