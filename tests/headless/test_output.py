"""What a command prints, wherever that goes: closed, full, or broken outputs, terminals without a
width, odd names.
"""

import fcntl
import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
from conftest import GPULAB
from scripted import OVER_SCRIPT, SCENARIO, CommandLine

from gpulab.headless.scripting import load

CLOSED, FULL = "it is closed", "No space left on device"
NOBODY = "no\x1b[31m\u202e\nforged\udcff"
RUN = "--run mine.py --profile off --telemetry off"


@pytest.fixture
def shell(lab):
    """`shell("ARGUMENTS >&-")`: gpulab with the redirections of a shell; over a script where it
    runs something.
    """
    lab.write("mine.py", SCENARIO)

    def call(line, env=None, program=GPULAB):
        words = " ".join(f"'{word}'" for word in program)
        command = ["bash", "-c", f"set -o pipefail; {words} {line}"]
        return subprocess.run(
            command, cwd=lab.folder, env=lab.env | (env or {}), capture_output=True, timeout=100
        )

    return call


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    """The same in this process."""
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


def safe(text):
    return all(
        mark == "\n" or mark.isprintable() or unicodedata.category(mark) == "Zs" for mark in text
    )


@pytest.mark.parametrize(
    ("arguments", "target", "reason"),
    [
        ("--version", ">&-", CLOSED),
        ("--guide verdict", ">/dev/full", FULL),
    ],
)
def test_output_that_cannot_be_written_is_said_and_ends_with_74(shell, arguments, target, reason):
    done = shell(f"{arguments} {target}")
    assert done.stderr.decode() == f"gpulab: stdout cannot be written: {reason}\n"
    assert done.returncode == 74


def test_a_run_whose_result_cannot_be_printed_is_measured_and_kept_with_its_json(lab, shell):
    done = shell(f"{RUN} --output run.jsonl --json r.json >/dev/full", program=OVER_SCRIPT)
    assert done.returncode == 74
    assert done.stderr.decode().splitlines()[-1].startswith("gpulab: stdout cannot be written")
    assert b"Traceback" not in done.stderr
    assert load(lab.folder / "run.jsonl").exit_code == 0
    assert json.loads((lab.folder / "r.json").read_text())["runs"][0]["outcome"] == "measured"


def test_a_run_needs_neither_stderr_nor_stdin(lab, shell):
    done = shell(f"{RUN} --output run.jsonl --json <&- 2>&-", program=OVER_SCRIPT)
    assert json.loads(done.stdout)["runs"][0]["outcome"] == "measured"
    assert done.returncode == 0
    assert load(lab.folder / "run.jsonl").exit_code == 0


def test_a_broken_pipe_ends_quietly_with_141(shell):
    for line in ("--list | true", "--help | true", "--list --json 2>&1 | true"):
        done = shell(line)
        assert (done.returncode, done.stdout, done.stderr) == (141, b"", b"")


def test_a_run_goes_on_where_the_reader_of_its_progress_went_away(lab, shell):
    done = shell(f"{RUN} --output run.jsonl --json r.json 2> >(true)", program=OVER_SCRIPT)
    assert done.returncode == 0
    assert json.loads((lab.folder / "r.json").read_text())["runs"][0]["outcome"] == "measured"
    assert load(lab.folder / "run.jsonl").exit_code == 0
    assert lab.none_left()


@pytest.mark.parametrize("target", ["/dev/fd/3 3>&1 >/dev/null | cat", ">(cat) >/dev/null"])
def test_json_is_written_to_a_pipe_by_its_descriptor(lab, shell, target):
    done = shell(f"--list --json {target}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert lab.none_left()  # nobody waits for a process of >()


def test_json_for_stdout_follows_what_is_printed_to_its_file(lab, shell):
    done = shell(f"{RUN} --json /dev/stdout > both.txt", program=OVER_SCRIPT)
    assert done.returncode == 0, done.stderr
    table, brace, data = (lab.folder / "both.txt").read_text().partition("\n{\n")
    assert "before" in table
    assert json.loads(brace + data)["runs"]


def test_an_output_that_does_not_block_gets_all_of_it(lab):
    """As where another program shares the terminal, and made it so."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    process = lab.start("--list", "--json", stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    assert process.wait(100) == 0
    assert len(data) > 8192
    assert json.loads(data)


def test_a_json_file_on_a_full_disk_ends_with_74(shell):
    done = shell("--list --json /dev/full")
    assert done.returncode == 74
    assert done.stderr == b"gpulab: --json /dev/full: No space left on device\n"


@pytest.mark.parametrize("columns", ["0", "abc"])
def test_a_width_that_no_terminal_has_is_none(gpulab, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", "80")
    usual = gpulab("--list")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    odd = gpulab("--list")
    assert (odd.stdout, odd.stderr, odd.code) == (usual.stdout, "", 0)
    assert len(usual.stdout) > 1000
    assert gpulab("--help").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "NOBODY --run x",
        "--run NOBODY",
        "--run mine.py --set n=NOBODY",
        "--run mine.py --plot NOBODY.gif",
        "NOBODY",
    ],
)
def test_a_mistake_shows_what_was_given_and_nothing_of_it_reaches_the_terminal(gpulab, arguments):
    done = gpulab(*(word.replace("NOBODY", NOBODY) for word in arguments.split()))
    assert (done.code, done.stdout) == (2, "")
    assert safe(done.stderr)
    assert not [line for line in done.stderr.splitlines() if line.startswith("forged")]
    assert "Traceback" not in done.stderr


def own(lab, name):
    """A scenario whose file has that name, alone in a folder."""
    folder = lab.folder / "odd"
    folder.mkdir()
    return (lab.folder / "mine.py").rename(folder / name)


def test_odd_names_of_files_are_listed_and_written_safely(lab, gpulab):
    """Escape sequence, right-to-left override, newline, and a byte that is no UTF-8."""
    own(lab, "x\x1b[31m\u202e\nforged \udcff.py")
    for options in ((), ("--ascii",), ("--json",)):
        done = gpulab("--list", "odd", *options)
        assert (done.code, done.stderr) == (0, "")
        assert safe(done.stdout)
        assert "forged" in done.stdout
        assert not [line for line in done.stdout.splitlines() if line.startswith("forged")]
    assert any("forged" in row["path"] for row in json.loads(done.stdout))


def test_a_scenario_with_an_odd_name_runs_and_every_file_that_it_makes_has_a_plain_one(lab, gpulab):
    path = own(lab, "x\x1b[31m\u202e\nforged .py")
    files = ("--output", "runs", "--plot", "out.svg", "--json", "r.json", "--export", "out.html")
    done = gpulab("--run", path, *RUN.split()[2:], "--smoke", "--sweep", "n=64,65", *files)
    assert done.code == 0, done.stderr
    assert safe(done.stdout)
    assert safe(done.stderr)
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert not [line for line in lines if line.startswith("forged")]
    assert safe((lab.folder / "r.json").read_text())
    made = [path.name for path in [*(lab.folder / "runs").iterdir(), *lab.folder.glob("out*")]]
    assert len(made) == 7
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.") for name in made), made


def test_a_scenario_is_written_whatever_its_name_is(lab, gpulab):
    for name in ('a"""; 1+0 #\x1b[31m\udcff.py', "___.py", "\\.py"):
        done = gpulab("--new", name)
        assert done.code == 0, done.stderr
        assert safe(done.stdout)
        assert gpulab("--list", name).stdout.count("your own") == 1
    for path in lab.folder.glob("*.py"):
        compile(path.read_bytes(), "new", "exec")


@pytest.mark.slow
def test_a_picture_that_cannot_be_made_is_said_after_everything_else(lab, shell):
    done = shell(
        f"{RUN} --output run.jsonl --json --plot out.png",
        {"MPLBACKEND": "no\x1b[31msuch"},
        OVER_SCRIPT,
    )
    assert done.returncode == 74
    assert json.loads(done.stdout)["runs"][0]["outcome"] == "measured"
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("gpulab: --plot out.png: ValueError: ")
    assert safe(done.stderr.decode())
    assert b"Traceback" not in done.stderr
    assert not (lab.folder / "out.png").exists()


def test_a_state_folder_whose_name_is_no_text_is_shown_and_still_gives_json(
    lab, gpulab, monkeypatch
):
    home = os.fsdecode(bytes(lab.folder) + b"/state\xff\x1b[31m")
    monkeypatch.setenv("XDG_STATE_HOME", home)
    done = gpulab(*RUN.split(), "--json")
    assert done.code == 0, done.stderr
    assert safe(done.stderr)
    assert json.loads(done.stdout)["runs"][0]["run_file"].startswith(
        f"{lab.folder}/state\ufffd\x1b[31m/gpulab"
    )
    assert len(list(Path(home).rglob("runs/*.jsonl"))) == 1
