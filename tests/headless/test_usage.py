"""Mistakes in a command are found before anything runs, and the message says what to write
instead; every flag belongs to modes, and does something in each.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
from scripted import SCENARIO, CommandLine

from gpulab.cli import flag_problem, help_text
from gpulab.modes import MODES, Mode
from gpulab.options import flags, helps, options_of


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    lab.write("functions.py", "def step(): pass\n")
    lab.write("constants.py", "x = 1\n")
    return CommandLine(lab, monkeypatch, capsys, worker=("/the/command/must/not/run",))


RUN = ["--run", "mine.py"]
SECONDS = "write a number of seconds above 0 and at most 604800"
MISTAKES = [
    # of each kind one: names
    (["--run", "batched_matmull"], "did you mean batched_matmul"),
    (["--run", "no.py:step"], "there is no file no.py"),
    (["--run", "mine.py:nothing"], "no 'nothing' at its top level; it defines scenario, before"),
    (["--run", "mine.py:before", "--fail-below", "1.2x"], "plain functions are not compared"),
    (["--run", "mine.py:before", "mine.py:before", "--plot", "x.svg"], "have the same name"),
    (["--run", "constants.py"], "no function to time; gpulab --new FILE writes"),
    (["--run", "mine.py", "--", "true"], "a program follows --, and nothing else runs beside it"),
    ([*RUN, "--variant", "x"], "--variant x: mine has no such variant; it has before, after"),
    (["batched_matmul"], "not a file: gpulab --run batched_matmul measures it"),
    # values
    ([*RUN, "--set", "x=1"], "its parameters: n=100"),
    ([*RUN, "--set", "n=1", "--set", "n=2"], "--set gives two values for the same name"),
    ([*RUN, "--fail-below", "nanx"], "write a speedup, such as 1.2x"),
    ([*RUN, "--time", "2", "--time", "3"], "argument --time: given twice: write it once"),
    ([*RUN, "--time", "nan"], f"--time 'nan': {SECONDS}"),
    ([*RUN, "--width", "100%"], "write a share, such as 3%"),
    ([*RUN, "--counters", "5us"], "write 10us to 100us"),
    ([*RUN, "--device", "tpu"], "write cpu, cuda or cuda:N"),
    ([*RUN, "--threads", "9999"], "this process may use"),
    ([*RUN, "--telemetry", "yes"], "write on, off, or a GPU's index or UUID"),
    ([*RUN, "--profile", "some"], "write on, off or all"),
    ([*RUN, "--variant", "("], "write a regular expression"),
    (["--completion", "tcsh"], "write bash, zsh or fish"),
    # files
    ([*RUN, "--output", "/proc/x/y"], "choose another path"),
    ([*RUN, "--json", "no/out.json"], "--json no/out.json: No such file"),
    ([*RUN, "--trace", "x.json", "--json", "x.json"], "--json and --trace name one file: x.json"),
    ([*RUN, "--plot", "out.jpg"], "the name ends in .png, .svg, .pdf"),
    (["--new", "x.txt"], "a scenario is a Python file"),
    (["--new", "mine.py"], "the file exists, and stays as it is"),
    (["--list", "nowhere"], "--list nowhere: there is no such file or folder"),
    # flags and modes
    ([*RUN, "--repeat", "8", "--smoke"], "--repeat and --smoke: one or the other"),
    ([*RUN, "--keep", "x.py"], "--keep requires --try"),
    (
        [*RUN, "--sweep", "n=" + ",".join(map(str, range(201)))],
        "201 points, and a grid has at most 200",
    ),
    (["--replay", "a", "b"], "--replay takes [RUN | NAME]"),
    (["--list", "--quick", "--ptx"], "--list does not take --quick, --ptx\n"),
    (
        ["--doctor", "--sweep", "n=1,2"],
        "--doctor does not take --sweep; it requires --run",
    ),
    (["--fail-below", "1.2"], "the screen does not take --fail-below; it requires --run"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_say_what_to_write(lab, gpulab, arguments, message):
    process = gpulab(*arguments)
    assert (process.code, process.stdout) == (2, "")
    assert " ".join(message.split()) in " ".join(process.stderr.split())
    assert "Traceback" not in process.stderr
    assert not list(lab.folder.glob("x.*"))


def test_every_flag_is_taken_by_its_modes_and_refused_by_all_others():
    for name, flag in flags().items():
        assert helps()[name]
        for mode in Mode if flag.name != "--required-speedup" else ():
            problem = flag_problem(mode, [name])
            assert (problem is None) == (mode in flag.modes)
            assert problem is None or f" does not take {flag.name}; it requires " in problem


def test_a_mode_is_a_word_or_a_flag(gpulab):
    assert gpulab("list", "mine.py").stdout == gpulab("--list", "mine.py").stdout
    assert gpulab("new", "x.py", "--ascii").code == 0
    assert help_text(["--run=x.py", "--help"]) == help_text(["run", "x.py", "-h"])


def test_help_alone_is_one_screen_with_every_mode():
    lines = help_text(["--help"]).splitlines()
    assert all(
        any(f"  {mode} " in line for line in lines) for mode, each in MODES.items() if each.help
    )
    assert len(lines) <= 22  # a terminal of 24, with the command and the next prompt
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("mode", list(Mode))
def test_the_help_of_a_mode_has_its_flags_and_no_others(mode, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = {Mode.SCREEN: [".", "-h"], Mode.FOLLOW: ["--run", "-h", "--"]}.get(mode, [mode, "-h"])
    page = help_text(words)
    listed = re.findall(r"^  (--[a-z-]+)", page.partition("examples:")[0], re.MULTILINE)
    assert sorted(listed) == sorted(flag.name for flag in flags().values() if mode in flag.modes)
    assert max(map(len, page.splitlines())) <= 80


def test_values_are_read(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "17")
    given = {
        "chosen": ["n=1", "name=a=b"],
        "time_s": "0.5",
        "width": "0.2%",
        "threads": "16",
        "sweep": [""],
    }
    given |= {"fail_below": ["1.2x", "fused=1.5"], "seed": "-9", "telemetry": "GPU-12ab/3"}
    given |= {"json": "-", "output": "%t%%t.jsonl", "smoke": True, "from_start": 0}
    options = options_of(given, {"quick": True, "seed": 3}, Mode.RUN)
    assert options.chosen == {"n": "1", "name": "a=b"}
    assert options.fail_below == {"": 1.2, "fused": 1.5}
    assert (options.time_s, options.width, options.threads, options.seed) == (0.5, 0.002, 16, -9)
    assert (str(options.output), options.json_on_stdout, options.quick) == (
        "17%t.jsonl",
        True,
        True,
    )
    assert options.given("sweep", "smoke", "from_start", "ranks") == [
        "--sweep",
        "--smoke",
        "--from-start",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[run]\nspeed = 3", "gpulab.toml: [run] speed: --run takes no --speed"),
        ("[run]\ntime = 'soon'", f"gpulab.toml: [run] time = 'soon': {SECONDS}"),
        ("[list]\nquick = true", "gpulab.toml: [list] quick: --list takes no --quick"),
        ("run = 3", "write [run], and a line for each flag"),
        ("[run", "gpulab.toml: "),
    ],
)
def test_a_mistake_in_a_file_of_defaults_is_named(lab, gpulab, monkeypatch, table, message):
    lab.write("gpulab.toml", table)
    (lab.folder / "below").mkdir()
    monkeypatch.chdir(lab.folder / "below")
    process = gpulab("--list" if "list" in table else "--run", "../mine.py")
    assert process.code == 2
    assert message in " ".join(process.stderr.split())


def test_defaults_of_a_mode_stand_in_a_file(lab, gpulab):
    lab.write("gpulab.toml", "[run]\nset = {n = 7}\njson = 'x/y.json'\n[list]\njson = 'out.json'\n")
    assert gpulab("--list", "mine.py").code == 0
    assert json.loads((lab.folder / "out.json").read_text())[0]["name"] == "mine"
    assert "--json x/y.json" in gpulab("--run", "mine.py").stderr
    assert "--json z/y.json" in gpulab("--run", "mine.py", "--json", "z/y.json").stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
def test_a_file_of_defaults_above_is_not_that_of_a_stranger(lab, gpulab, monkeypatch):
    lab.write("gpulab.toml", "[list]\nspeed = 3")
    below = lab.folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert gpulab("--list").code == 2
    os.chown(below, 4321, -1)
    assert gpulab("--list").code == 0


def test_a_shell_completes_modes_flags_and_scenarios(gpulab):
    script = gpulab("--completion", "bash").stdout
    typed = 'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gpulab; echo "${COMPREPLY[@]}"\n'
    for words, completed in (
        ("--rep", "--replay"),
        ("run --swe", "--sweep"),
        ("--show vector_a", "vector_add"),
    ):
        done = subprocess.run(
            ["bash", "-c", f"{script}COMP_WORDS=(gpulab {words}); {typed}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{completed}\n"
    assert gpulab("--completion", "zsh").stdout.endswith(script)
    assert "-l sweep -d" in gpulab("--completion", "fish").stdout


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
    for _ in range(2):
        assert gpulab("--list", "--json", "list.json").code == 0
        outputs = ("--json", "r.json", "--plot", "p.svg", "--export", "e.md")
        assert gpulab("--replay", "batched_matmul", *outputs).code == 0
        outputs = ("--plot", "p.png", "--export", "e.html")
        assert gpulab("--replay", "batched_matmul", *outputs).code == 0


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


def test_a_mistake_in_a_command_leaves_no_worker_behind(tmp_path):
    """torch is imported while a command is still read."""
    marked = {**os.environ, "GPULAB_OF_THIS_TEST": str(tmp_path)}
    command = [sys.executable, "-m", "gpulab", "--run", "there_is_no_such_lesson"]
    done = subprocess.run(command, env=marked, capture_output=True, text=True, check=False)
    assert (done.returncode, "there is no scenario" in done.stderr) == (2, True)
    assert not [process for process in psutil.process_iter() if is_marked(process, str(tmp_path))]


def is_marked(process, mark):
    with suppress(psutil.Error):
        return process.environ().get("GPULAB_OF_THIS_TEST") == mark
    return False
