"""An option is declared once: as a flag, as a keyword, and in gpulab.toml it is the same."""

import json

import pytest
from scripted import CommandLine

import gpulab


@pytest.fixture
def command(lab, monkeypatch, capsys):
    return CommandLine(lab, monkeypatch, capsys)


SMOKE = ("--smoke", "--device", "cpu", "--telemetry", "off")


def test_a_mode_is_a_word_too_unless_a_file_has_its_name(command, lab):
    assert command("list").code == 0
    lab.write("list", "")
    assert "list" in command("list").stderr


def test_variants_that_match_run_beside_the_baseline(command):
    done = command("--run", "batched_matmul", "--variant", "b.m", *SMOKE, "--json")
    variants = json.loads(done.stdout)["runs"][0]["variants"]
    assert [variant["name"] for variant in variants] == ["loop", "bmm"]
    nothing = command("--run", "batched_matmul", "--variant", "x", *SMOKE)
    assert (nothing.code, nothing.stderr) == (
        2,
        "gpulab: --variant x: none of loop, graphed, bmm\n",
    )
    assert command("--run", "batched_matmul", "--variant", "(", *SMOKE).code == 2


def test_several_sweeps_are_a_grid(command):
    sweeps = ("--sweep", "batch=2,3", "--sweep", "n=8,16")
    done = command("--run", "batched_matmul", *sweeps, *SMOKE, "--json")
    result = json.loads(done.stdout)
    params = [(run["params"]["batch"], run["params"]["n"]) for run in result["runs"]]
    assert params == [(2, 8), (2, 16), (3, 8), (3, 16)]
    fixed = [(sweep["parameter"], sweep["fixed"]) for sweep in result["sweeps"]]
    assert fixed == [("n", {"batch": "2"}), ("n", {"batch": "3"})]


def test_a_name_may_be_a_pattern_of_names(command):
    done = command("--run", "batched_mat.*", *SMOKE, "--json")
    assert [run["scenario"] for run in json.loads(done.stdout)["runs"]] == ["batched_matmul"]


def test_defaults_come_from_the_nearest_file_and_flags_count_more(command, lab, monkeypatch):
    lab.write(
        "gpulab.toml", '[defaults.run]\nsmoke = true\ndevice = "cpu"\ntelemetry = "off"\nseed = 7\n'
    )
    (lab.folder / "inner").mkdir()
    monkeypatch.chdir(lab.folder / "inner")
    run = json.loads(command("--run", "batched_matmul", "--seed", "8", "--json").stdout)["runs"][0]
    assert (run["smoke"], run["seed"]) == (True, 8)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense = 1", "nonsense: --run takes no such option"),
        ("seed = 1.5", "seed: '1.5' is not a whole number"),
        ("smoke = 1", "smoke: write true or false"),
        ('profile = "x"', "profile: write one of on, off, all"),
    ],
)
def test_what_is_wrong_with_a_default_is_said_with_its_place(command, lab, line, message):
    lab.write("gpulab.toml", f"[defaults.run]\n{line}\n")
    done = command("--run", "batched_matmul", *SMOKE)
    assert done.code == 2
    assert f"gpulab.toml: [defaults.run] {message}" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_what_is_declared(command, shell):
    done = command("--completion", shell)
    assert done.code == 0
    assert "variant" in done.stdout
    assert command("--completion", "csh").code == 2


def test_runs_of_the_past_are_had_in_python(command, lab):
    for _ in range(2):
        command("--run", "batched_matmul", *SMOKE)
    assert gpulab.history("batched_matmul").runs == 2
    runs = sorted(str(path) for path in lab.folder.rglob("*.jsonl"))
    assert gpulab.compare(*runs[:2]).comparisons[0].scenario == "batched_matmul"
    with pytest.raises(gpulab.UsageError):
        gpulab.history("nothing")
