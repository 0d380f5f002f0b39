"""The command line as a user meets it: tables, JSON, exit codes, messages."""

import json
import re
import subprocess
import sys

import pytest

SCENARIO = """
\"\"\"Twice: one multiplication and two.\"\"\"
import torch
from gpulab import Scenario, Work
scenario = Scenario("mine", params={"n": 4096, "name": "x", "flag": False}, claim="2x", ladder=True)

@scenario.variant
def two(lab, n):
    data = torch.rand(n)
    return Work(lambda: data * 2 * 2, inputs=data)

@scenario.variant(claim="2x, surely")
def one(lab, n):
    data = torch.rand(n)
    return Work(lambda: data * 4, inputs=data)

@scenario.variant(needs=("cuda",))
def on_gpu(lab, n):
    raise AssertionError

@scenario.variant(against=None)
def scale(lab, n, flag):
    lab.report("mean of the data", 0.5)
    data = torch.rand(n)
    return Work(lambda: data * 4, inputs=data, items=1)
"""


@pytest.fixture
def mine(lab):
    return lab.write("mine.py", SCENARIO)


def test_a_run_prints_a_table_and_ends_well(lab, mine):
    done = lab.call("--run", mine, "--device", "cpu", "--time", "0.5", "--ascii", "--telemetry", "off")
    assert done.code in (0, 7)
    assert done.stdout.isascii()
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "baseline" in rows["two"]
    assert re.search(r"one +\d.*us .*x .* to .*(faster|inconclusive|invalid)", rows["one"])
    assert "control" in rows
    assert "skipped" in rows["on_gpu"]
    assert "needs cuda" in done.stdout
    assert "claim: 2x; measured here: one" in done.stdout
    assert "claim of one: 2x, surely; measured here:" in done.stdout
    assert "mean of the data 0.5" in done.stdout
    assert "epochs," in done.stdout
    assert "warm-up two" in done.stderr


def test_json_has_stdout_to_itself_and_the_documented_fields(lab, mine):
    done = lab.run(mine, "--set", "n=64", "--seed", "3")
    assert done.result["schema"] == "gpulab.result/1"
    assert done.result["exit_code"] == done.code
    assert set(done.result["environment"]) >= {"gpulab", "python", "torch", "driver"}
    run = done.run
    assert (run["scenario"], run["params"]["n"], run["seed"], run["claim"]) == ("mine", 64, 3, "2x")
    assert re.fullmatch("[0-9a-f]{64}", run["source_sha256"])
    assert set(run["device"]) >= {"kind", "name", "uuid", "threads"}
    assert set(run["method"]) >= {"clock", "cache", "epochs", "rounds", "confidence", "floor", "stopped"}
    assert set(run["control"]) >= {"speedup", "low", "high"}
    assert run["run_file"] == str(done.run_file)
    variant = done.variant("one")
    assert set(variant) >= {
        "name", "status", "reason", "items", "bytes", "flops", "time_s", "steps_per_block", "contention", "build_s",
        "first_step_s",
    }  # fmt: skip
    assert variant["time_s"]["low"] <= variant["time_s"]["median"] <= variant["time_s"]["high"]
    comparison = run["comparisons"][0]
    assert set(comparison) == {
        "variant", "against", "speedup", "low", "high", "mde", "pairs", "dropped", "verdict", "reason",
    }  # fmt: skip
    assert [one["variant"] for one in run["comparisons"]] == ["one"]
    assert "two " in done.stderr
    assert done.variant("on_gpu")["status"] == "skipped"


def test_json_to_a_file_leaves_the_table_on_stdout(lab, mine):
    done = lab.call("--run", mine, "--device", "cpu", "--time", "0.2", "--json", "r.json")
    assert "verdict" in done.stdout
    assert json.loads((lab.folder / "r.json").read_text())["runs"][0]["scenario"] == "mine"


def test_plain_functions_are_timed_and_nothing_is_claimed(lab):
    path = lab.write("mine.py", "import time\ndef step(): time.sleep(1e-3)\ndef other(): pass\nn = 3\n")
    done = lab.run(f"{path}:step,other")
    assert done.code in (0, 7)
    assert done.run["comparisons"] == []
    assert done.run["control"]["speedup"] is not None
    assert done.variant("step")["time_s"]["median"] > 1e-3
    assert done.variant("other")["time_s"]["median"] < 1e-5


def test_a_function_that_wants_arguments_is_told(lab):
    path = lab.write("mine.py", "def step(x): return x\n")
    done = lab.run(f"{path}:step")
    assert done.code == 3
    assert "missing 1 required positional argument" in done.stderr


def test_a_new_scenario_runs_as_it_is(lab):
    assert lab.call("--new", "my_step.py").code == 0
    done = lab.run("my_step.py", "--smoke")
    assert done.code in (0, 7)
    assert done.variant("one_pass")["status"] == "ok"
    assert "a smoke run" in done.stderr
    again = lab.call("--new", "my_step.py")
    assert again.code == 2
    assert "stays as it is" in again.stderr


@pytest.mark.parametrize("name", ["batched_matmul", "optimizer_step"])
def test_the_lessons_run_at_smoke_size(lab, name):
    done = lab.run(name, "--smoke")
    assert done.code in (0, 7)
    assert {one["status"] for one in done.run["variants"]} == {"ok"}
    assert done.run["smoke"] is True


def test_all_goes_on_past_failures_and_skips_what_the_machine_lacks(lab):
    folder = lab.folder / "many"
    folder.mkdir()
    (folder / "a_broken.py").write_text("from gpulab import Scenario\nscenario = Scenario(\n")
    (folder / "b_cuda.py").write_text(SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    (folder / "c_good.py").write_text(SCENARIO)
    done = lab.call("--run", "many", "--device", "cpu", "--time", "0.2", "--json", "--output", "runs")
    runs = {one["scenario"]: one for one in json.loads(done.stdout)["runs"]}
    assert runs["a_broken"]["exit_code"] == 3
    assert runs["b_cuda"]["outcome"] == "skipped"
    assert runs["c_good"]["comparisons"]
    assert done.code == 3
    assert (lab.folder / "runs" / "c_good.jsonl").exists()


def test_a_demanded_speedup_decides_the_exit_code(lab):
    path = lab.write("mine.py", SCENARIO.replace("data * 2 * 2", "[data * 4 for _ in range(9)][0]"))
    for demand, code in (("1.2x", 0), ("100x", 5)):
        done = lab.run(path, "--fail-below", demand, time_s="1")
        assert done.code in (code, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "nothing_such"], "there is no scenario 'nothing_such'"),
        (["--run", "no.py"], "there is no file no.py"),
        (["--run", "no.py:step"], "there is no file no.py"),
        (["--run", "batched_matmul", "--set", "x=1"], "it has batch=40"),
        (["--run", "batched_matmul", "--set", "n"], "write NAME=VALUE"),
        (["--run", "batched_matmul", "--device", "tpu"], "write cpu, cuda or cuda:N"),
        (["--run", "batched_matmul", "--time", "-1"], "not a number of seconds"),
        (["--run", "batched_matmul", "--threads", "0"], "not a number of threads"),
        (["--run", "batched_matmul", "--output", "/proc/x/y"], "choose another with --output"),
        (["--list", "nowhere"], "no such file or folder"),
        (["--list", "--run", "all"], "not allowed with"),
        (["--new", "x.txt"], "a scenario is a Python file"),
    ],
)
def test_usage_errors_say_what_to_do(lab, arguments, message):
    done = lab.call(*arguments)
    assert done.code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_named_scenario_whose_needs_are_unmet_fails_with_the_reason(lab):
    path = lab.write("g.py", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    done = lab.run(path)
    assert done.code == 3
    assert "needs cuda" in done.stderr


def test_a_run_file_is_never_overwritten(lab, mine):
    (lab.folder / "kept.jsonl").write_text("mine")
    done = lab.call("--run", mine, "--output", "kept.jsonl")
    assert done.code == 2
    assert (lab.folder / "kept.jsonl").read_text() == "mine"


def test_the_list_names_topics_needs_and_errors(lab):
    folder = lab.folder / "scenarios"
    folder.mkdir()
    (folder / "gpu_only.py").write_text(SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    (folder / "broken.py").write_text("from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n")
    done = lab.call("--list")
    assert done.code == 0
    assert "launch and host overhead" in done.stdout
    assert re.search(r"gpu_only +Twice: .*\(needs cuda: ", done.stdout)
    assert "broken.py" in done.stdout
    assert "line 2: Scenario knows no 'spede'; it takes needs," in done.stdout
    rows = {row["name"]: row for row in json.loads(lab.call("--list", "--json").stdout)}
    assert rows["broken"]["error"]
    assert rows["gpu_only"]["missing"].startswith("needs cuda")
    assert rows["batched_matmul"]["params"]["batch"] == 40


def test_output_is_ascii_where_the_locale_is(lab, mine):
    lab.env = {name: value for name, value in lab.env.items() if not name.startswith("LC_")} | {"LANG": "C"}
    done = lab.call("--run", mine, "--device", "cpu", "--time", "0.2")
    assert (done.stdout + done.stderr).isascii()


def test_a_closed_pipe_is_no_traceback(lab):
    script = f"{sys.executable} -m gpulab --list --json | head -c 10"
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=lab.env, cwd=lab.folder, check=False)
    assert b"Traceback" not in done.stderr


def test_a_variant_that_registers_another_way_is_refused_by_the_worker(lab):
    path = lab.write("sly.py", SCENARIO + "\ngetattr(scenario, 'vari' + 'ant')(lambda lab: None)\n")
    done = lab.run(path)
    assert done.code == 3
    assert "but its text says two, one, on_gpu, scale" in done.stderr
