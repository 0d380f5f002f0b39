"""`gpulab --run -- PROGRAM`: it runs as it would without, whatever it does, and what was measured
stays.
"""

import ast
import json
import re
import signal
import sys
import time

import pytest
from conftest import GPULAB
from programs import GAN, HANG, INFER, SCRIPT, STEPS, TRAIN, bare_interpreter
from pseudo_terminal import Pty

from gpulab.features.program.files import AGENT


def followed(lab, *command, flags=("--telemetry", "off"), **options):
    """The finished command with its result."""
    target = lab.folder / "r.json"
    target.unlink(missing_ok=True)
    finished = lab.call("--run", "--json", target, *flags, "--", *command, **options)
    if target.exists():
        finished.result = json.loads(target.read_text())
    return finished


@pytest.fixture(scope="module")
def trained(module_lab):
    """A training loop with workers, which crashes at its end."""
    module_lab.write("train.py", TRAIN)
    flags = ("--trace", "t.json", "--top", "2")
    return followed(module_lab, sys.executable, "train.py", "8", flags=flags)


def test_a_training_loop_has_its_own_output_traceback_and_exit_code(trained):
    assert trained.code == 1
    assert trained.stdout.startswith("steps ")
    assert trained.stdout.endswith(" False\n")  # nothing of ours is in sys.path
    assert trained.stderr.startswith("Traceback (most recent call last):\n")
    assert "RuntimeError: the end of it\n" in trained.stderr
    assert "exit code 1 after" in trained.stderr
    assert "at least" in trained.stderr  # one that was killed would not have told of its last steps


def test_its_steps_are_counted_timed_and_recorded_apart(trained):
    run, program = trained.run, trained.run["program"]
    assert run["outcome"] == "failed"
    assert run["reason"]["code"] == "program_exited"
    assert program["mark"] == "optimizer"
    assert program["steps"] == int(trained.stdout.split()[1])
    assert program["code"] == 1
    (variant,) = run["variants"]
    assert variant["name"] == "train.py"
    assert 0 < variant["time_s"]["value"] < program["wall_s"]
    assert 0 < program["recorded_s"] < program["loop_s"] < program["wall_s"]
    assert 0 < program["following_s"] < program["loop_s"]
    assert trained.stderr.count("following ") == 1
    assert 0 < program["first_step_s"] < program["wall_s"]
    assert [process["steps"] for process in program["processes"] if process["mark"]] == [
        program["steps"]
    ]


def test_its_profile_is_as_of_any_run(trained, module_lab):
    goodput = trained.variant("train.py")["goodput"]
    products = [row for row in goodput["operations"] if row["name"] == "aten::addmm"]
    assert sum(row["calls"] for row in products) == 2
    assert all(row["shapes"] for row in products)
    assert {row["line"] for row in products} == {"train.py:19"}
    assert {row["module"] for row in products} == {"Sequential.0", "Sequential.2"}
    assert sum(goodput["partition"].values()) == pytest.approx(1)
    trace = json.loads((module_lab.folder / "t.json").read_text())
    assert any(event.get("name") == "gpulab:window" for event in trace["traceEvents"])
    assert "where the time goes" in trained.stderr
    assert re.search(
        r"^operations of a step.*\n.*\n.*\n2 of \d+ rows", trained.stderr, re.MULTILINE
    )


def test_a_replay_takes_the_flags_of_the_table_and_refuses_those_of_other_runs(trained, module_lab):
    path = trained.run["run_file"]
    three = module_lab.call("--replay", path, "--top", "3")
    assert three.code == 3  # the program failed
    assert re.search(r"^3 of \d+ rows", three.stdout, re.MULTILINE)
    for flag in ("--raw", "--markdown", "--from-start"):
        refused = module_lab.call("--replay", path, flag)
        assert (refused.code, refused.stdout) == (2, "")
        assert f"is of a followed program: {flag} does not apply to it" in refused.stderr


@pytest.mark.slow
def test_a_loop_without_an_optimizer_that_is_killed_keeps_its_steps(lab):
    lab.write("infer.py", INFER)
    finished = followed(lab, sys.executable, "infer.py")
    program = finished.run["program"]
    assert (finished.code, program["signal"], program["code"]) == (137, 9, None)
    assert program["mark"] == "module"
    assert program["steps"] > 3
    assert finished.variant("infer.py")["time_s"]["value"] > 0
    assert re.search(r"^ended +by SIGKILL", finished.stderr, re.MULTILINE)


def test_steps_are_of_a_kind_by_what_they_did_and_no_time_is_of_two(lab):
    lab.write("gan.py", GAN)
    finished = followed(lab, sys.executable, "gan.py", flags=("--profile", "off"))
    program = finished.run["program"]
    assert program["kinds"] == {"train": 651, "train: Adam, SGD": 49}
    assert not program["mixed"]
    assert 2 * finished.variant("gan.py")["time_s"]["value"] < program["loop_s"] / 700
    assert "of kind train, without the profiler" in finished.stderr


def test_steps_that_the_program_names_need_no_torch_and_no_gpulab_there(lab):
    python = bare_interpreter(lab.folder / "bare")
    lab.write("steps.py", STEPS)
    (lab.folder / "lines").write_text("a\nb\n" * 100 + "last")
    with (lab.folder / "lines").open() as lines:
        finished = followed(lab, python, "steps.py", stdin=lines)
    assert (finished.code, finished.stdout) == (3, "last")
    assert finished.stderr.startswith("its own\n")
    program = finished.run["program"]
    assert (program["mark"], program["steps"]) == ("gpulab.step", 201)
    assert finished.explanations("no_recording")
    assert finished.variant("steps.py")["time_s"]["value"] >= 0.01


def test_what_an_old_python_reads_of_the_agent_is_written_for_it():
    source = (AGENT / "sitecustomize.py").read_text()
    tree = ast.parse(source, feature_version=(3, 7))
    kinds = {type(node) for node in ast.walk(tree)}
    assert not kinds & {ast.FunctionDef, ast.AnnAssign, ast.JoinedStr, ast.Starred, ast.ImportFrom}


def test_a_script_has_its_output_and_its_time_and_says_why_there_are_no_steps(lab):
    lab.write("job.sh", SCRIPT).chmod(0o755)
    finished = followed(lab, "./job.sh")
    assert finished.code == 7
    assert finished.stdout == "x" * 5_000_000
    assert finished.stderr.startswith("of the script\n")
    assert finished.explanations("no_python")
    assert finished.run["program"]["left"] == 1
    assert finished.explanations("processes_go_on")
    assert lab.none_left(within=20)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("-I", "-c", "print(1)"), "no_python"), (("-c", "import torch; print(1)"), "no_step")],
)
def test_a_python_that_is_isolated_or_takes_no_steps_says_so(lab, arguments, code):
    flags = ("--telemetry", "off", "--profile", "off")
    finished = followed(lab, sys.executable, *arguments, flags=flags)
    assert (finished.code, finished.stdout) == (0, "1\n")
    assert finished.explanations(code)
    assert finished.run["outcome"] == "measured"


def test_what_cannot_be_started_is_said_and_has_the_code_of_a_shell(lab):
    lab.write("text", "no program")
    for command, code, words in (
        ("no-such-program", 127, "No such file"),
        ("./text", 126, "Permission denied"),
    ):
        finished = followed(lab, command)
        assert finished.code == code
        assert finished.stderr.startswith(f"gpulab: {command}: {words}")
        assert finished.stderr.count("\n") == 1


def test_a_hang_ends_with_all_that_it_started(lab):
    lab.write("hang.py", HANG)
    finished = followed(
        lab, sys.executable, "hang.py", flags=("--telemetry", "off", "--timeout", "2")
    )
    assert (finished.code, finished.stdout) == (124, "hangs\n")
    assert "no end after 2 s (--timeout)" in finished.stderr
    assert lab.none_left()


def test_a_signal_to_the_command_goes_to_the_program(lab):
    program = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(5)); print(1, flush=True); time.sleep(60)"
    process = lab.start("--run", "--", sys.executable, "-c", program)
    assert process.stdout.readline() == b"1\n"
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 5, stderr
    assert b"exit code 5 after" in stderr


def test_ctrl_c_reaches_the_program_and_leaves_nothing(lab):
    lab.write("hang.py", HANG)
    terminal = Pty([*GPULAB, "--run", "--", sys.executable, "hang.py"], env=lab.env, cwd=lab.folder)
    terminal.read(30, until=b"hangs")
    time.sleep(0.3)
    terminal.press(b"\x03")
    assert terminal.end(within=30) == 130
    assert b"KeyboardInterrupt" in terminal.output
    assert b"by SIGINT" in terminal.output
    assert lab.none_left()


def test_on_the_screen_it_runs_at_once_and_q_ends_it(lab):
    lab.write("hang.py", HANG)
    terminal = Pty(
        [*GPULAB, "--telemetry", "off", "--", sys.executable, "hang.py"],
        size=(120, 40), env=lab.env, cwd=lab.folder,
    )  # fmt: skip
    terminal.read(30, until=b"FOLLOWING hang.py")
    terminal.press(b"5")
    terminal.read(30, until=b"hangs")
    terminal.press(b"qq")
    assert terminal.end(within=30) == 0
    assert lab.none_left()


def test_json_on_stdout_starts_nothing(lab):
    finished = lab.call_over(None, "--run", "--json", "--", "true")
    assert (finished.code, finished.stdout) == (2, "")
    assert "--json needs a FILE here: stdout is the program's" in finished.stderr


def test_a_help_after_the_dashes_is_the_programs(lab):
    assert followed(lab, "sh", "-c", "echo $0", "--help").stdout == "--help\n"
    assert "PROGRAM [ARGUMENT ...]" in lab.call("--run", "--help", "--").stdout


CHANGES = """
import time, torch

linear = torch.nn.Linear(4, 4)
data = torch.randn(2, 4)
for seconds, steps in ((0.004, 150), (0.04, 50)):
    for _ in range(steps):
        linear(data)
        time.sleep(seconds)
"""


def test_quantiles_are_of_all_steps_where_their_time_changes(lab):
    """Windows are as long: there are as many of the last quarter of the steps as of the others."""
    lab.write("changes.py", CHANGES)
    flags = ("--telemetry", "off", "--profile", "off")
    done = followed(lab, sys.executable, "changes.py", flags=flags)
    (kind,) = done.run["bill"]["bills"][0]["steps"]
    assert kind["slow"] >= 45
    assert 2 * kind["p50_s"] < 0.04 <= kind["p99_s"]
    assert kind["p50_s"] < done.variant("changes.py")["time_s"]["value"] < kind["p99_s"]
