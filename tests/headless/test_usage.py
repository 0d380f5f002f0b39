"""Mistakes in a command are found before anything runs, and the message says what to write
instead.
"""

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.modes import Mode


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    lab.write("functions.py", "def step(): pass\n")
    lab.write("constants.py", "x = 1\n")
    return CommandLine(lab, monkeypatch, capsys, worker=("/the/command/must/not/run",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "nothing_such"], "there is no scenario 'nothing_such'"),
        (["--run", "batched_matmull"], "did you mean batched_matmul"),
        (["--run", "no.py"], "there is no file no.py"),
        (["--run", "no.py:step"], "there is no file no.py"),
        (
            ["--run", "mine.py:nothing_such"],
            "no 'nothing_such' at its top level; it defines scenario, before",
        ),
        (["--run", "functions.py:step,step"], "name each function once"),
        (["--run", "batched_matmul", "--set", "x=1"], "its parameters: batch=40"),
        (["--run", "batched_matmul", "--set", "n"], "write NAME=VALUE"),
        (
            ["--run", "batched_matmul", "--set", "n=1", "--set", "n=2"],
            "--set gives one parameter twice",
        ),
        (
            ["--run", "batched_matmul", "--sweep", "n=1,2", "--sweep", "batch=1,2"],
            "argument --sweep: given twice: write it once",
        ),
        (
            ["--run", "mine.py", "--fail-below", "1.2x", "--fail-below", "1.3x"],
            "--fail-below gives two thresholds for the same",
        ),
        (
            ["--run", "--sweep", "n=1,2", "--", "python", "train.py"],
            "--run -- PROGRAM does not take --sweep; it requires --run WHAT",
        ),
        (["--run", "batched_matmul", "--device", "tpu"], "write cpu, cuda or cuda:N"),
        (["--run", "batched_matmul", "--time", "-1"], "not a number of seconds"),
        (["--run", "batched_matmul", "--threads", "0"], "not a number of threads"),
        (["--run", "batched_matmul", "--threads", "9999"], "this process may use"),
        (
            ["--run", "batched_matmul", "--telemetry", "yes"],
            "is not on, off, or a GPU's index or UUID",
        ),
        (["--run", "batched_matmul", "--output", "/proc/x/y"], "choose another path"),
        (["--run", "mine.py", "--fail-below", "fast"], "is not a speedup, such as 1.2x"),
        (["--run", "mine.py:before", "--fail-below", "1.2x"], "plain functions are not compared"),
        (["batched_matmul"], "not a file: gpulab --run batched_matmul measures it"),
        (["--run", "constants.py"], "no function to time; gpulab --new FILE writes"),
        (["--list", "nowhere"], "--list nowhere: there is no such file or folder"),
        (["--list", "--run", "all"], "not allowed with"),
        (["--new", "x.txt"], "a scenario is a Python file"),
        (["--new", "mine.py"], "the file exists, and stays as it is"),
        (["--run", "mine.py", "--plot", "out.jpg"], "the name ends in .png, .svg, .pdf"),
        (["--run", "mine.py", "--plot", "/proc/nowhere/out.png"], "--plot /proc/nowhere/out.png"),
        (["--run", "mine.py", "--export", "x.pdf"], "ends in .html, .md"),
        (["--run", "mine.py", "--export", "no/x.html"], "--export no/x.html: No such file"),
        (["--run", "mine.py", "--json", "no/out.json"], "--json no/out.json: No such file"),
        (["--calibrate", "mine.py"], "mine.py: pass it after --run or --list"),
        (["--calibrate", "--device", "tpu"], "write cpu, cuda or cuda:N"),
        (["--calibrate", "--json", "/proc/nowhere/out.json"], "--json /proc/nowhere/out.json"),
        (["--run", "mine.py", "--plot", "x.svg", "--json", "x.svg"], "--json and --plot name"),
        (["--run", "mine.py:before", "mine.py:before", "--plot", "x.svg"], "have the same name"),
        (
            ["--run", "mine.py", "--trace", "x.json", "--json", "x.json"],
            "--json and --trace name one file: x.json",
        ),
        (
            ["--run", "mine.py:before", "mine.py:before", "--trace", "t.json"],
            "--trace: two of the runs have the same name",
        ),
    ],
)
def test_mistakes_say_what_to_write(gpulab, arguments, message):
    process = gpulab(*arguments)
    assert (process.code, process.stdout) == (2, "")
    assert message in " ".join(process.stderr.split())
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("mode", "flags", "message"),
    [
        (Mode.LIST, ["--list", "--plot", "out.png"], "--plot; it requires --run or --replay"),
        (Mode.LIST, ["--list", "--time", "3"], "--time; it requires the screen or --run"),
        (Mode.DOCTOR, ["--doctor", "--sweep", "n=1,2"], "--sweep; it requires --run"),
        (Mode.DOCTOR, ["--doctor", "--output", "x.jsonl"], "--output; it requires"),
        (Mode.CALIBRATE, ["--calibrate", "--fail-below", "1.2"], "--fail-below; it requires --run"),
        (Mode.NEW, ["--new", "x.py", "--json"], "--json; it requires"),
        (Mode.GUIDE, ["--guide", "--smoke"], "--smoke; it requires"),
        (
            Mode.GUIDE,
            ["--guide", "--quick", "--plot", "x.png"],
            "--quick, --plot; they require --run",
        ),
        (Mode.SCREEN, ["--fail-below", "1.2"], "--fail-below; it requires --run"),
    ],
)
def test_a_flag_that_the_mode_does_not_take_is_refused(lab, gpulab, mode, flags, message):
    process = gpulab(*flags)
    assert (process.code, process.stdout) == (2, "")
    assert f"{mode} does not take {message}" in process.stderr
    page = "" if mode == Mode.SCREEN else f"{mode} "
    assert process.stderr.endswith(f"\nsee gpulab {page}--help\n")
    assert not (lab.folder / "x.py").exists()


def test_every_mode_takes_ascii(gpulab):
    for arguments in (["--list"], ["--new", "x.py"]):
        assert gpulab(*arguments, "--ascii").code == 0


def test_a_run_file_is_never_overwritten(lab, gpulab):
    (lab.folder / "old.jsonl").write_text("precious")
    for mode in (["--run", "mine.py"], ["--calibrate"]):
        process = gpulab(*mode, "--output", "old.jsonl")
        assert process.code == 2
        assert "--output old.jsonl exists: runs are never overwritten" in process.stderr
        assert "Traceback" not in process.stderr
    assert (lab.folder / "old.jsonl").read_text() == "precious"


def test_json_never_replaces_a_run_file(lab, gpulab):
    run_file = lab.write("old.jsonl", '{"format":"gpulab.run","version":2,"gpulab":"0"}\n')
    process = gpulab("--run", "mine.py", "--json", "old.jsonl")
    assert process.code == 2
    assert "that is a run file, which is never overwritten" in process.stderr
    assert run_file.read_text().startswith('{"format"')


_OUTPUTS = {
    "--json": "step.py",
    "--junit": "j.xml",
    "--plot": "p.png",
    "--export": "README.md",
    "--trace": "t.json",
}


@pytest.mark.parametrize("flag", _OUTPUTS)
def test_no_output_replaces_what_gpulab_has_not_written(lab, gpulab, flag):
    name = _OUTPUTS[flag]
    own = lab.write(name, '# how to use gpulab\nfrom gpulab import Scenario  # {"a": 1}\n')
    link = lab.folder / f"link-{name}"
    link.symlink_to(lab.folder / "elsewhere")
    (lab.folder / f"folder-{name}").mkdir()
    for file, message in (
        (name, "a file that gpulab has not written is there"),
        (link.name, "it is a link"),
        (f"folder-{name}", "Is a directory"),
    ):
        process = gpulab("--run", "mine.py", flag, file)
        assert process.code == 2
        assert f"{flag} {file}: {message}" in " ".join(process.stderr.split())
    assert own.read_text().startswith("# how to use gpulab")
    assert not (lab.folder / "elsewhere").exists()


def test_a_second_name_of_one_file_is_seen(lab, gpulab):
    (lab.folder / "here").symlink_to(lab.folder)
    process = gpulab("--run", "mine.py", "--junit", "a", "--json", "here/a")
    assert process.code == 2
    assert "--json and --junit name one file" in process.stderr


def test_outputs_of_an_earlier_command_are_replaced(lab, gpulab):
    outputs = {"--json": "r.json", "--plot": "p.svg", "--export": "e.md"}
    words = [word for flag in outputs.items() for word in flag]
    (lab.folder / "r.json").touch()
    for _ in range(2):
        assert gpulab("--replay", "batched_matmul", *words).code == 0
    for ending in ("html", "md"):
        for _ in range(2):
            assert gpulab("--replay", "batched_matmul", "--export", f"e.{ending}").code == 0
    for ending in ("png", "pdf"):
        for _ in range(2):
            assert gpulab("--replay", "batched_matmul", "--plot", f"p.{ending}").code == 0
    for command in (["--doctor"], ["--list"], ["--history"]):
        for _ in range(2):
            assert gpulab(*command, "--json", f"{command[0][2:]}.json").code in (0, 3)


def test_the_screen_needs_a_terminal(gpulab):
    process = gpulab("mine.py")
    assert process.code == 2
    assert "the screen needs a terminal" in process.stderr


def test_a_mistake_ends_the_real_program_with_2(lab):
    process = lab.call("--run", "nothing_such")
    assert (process.code, process.stdout) == (2, "")
    assert process.stderr.startswith("gpulab: there is no scenario 'nothing_such'")


def test_a_folder_that_was_deleted_is_named(lab):
    path = lab.write("mine.py", "def step():\n    pass\n")
    gone = lab.folder / "gone"
    gone.mkdir()
    process = lab.call("--run", f"{path}:step", cwd=gone, preexec_fn=gone.rmdir)
    assert process.code == 74
    assert "the current folder was deleted" in process.stderr
