"""Each flag belongs to modes: given to another it is refused with its name, that of the mode, and
where it belongs.
"""

import argparse
import re
from types import SimpleNamespace

import pytest
from gpulab.flags import GROUPS

from gpulab import modes
from gpulab.cli import add_flags, flag_problem, help_text
from gpulab.modes import MODES, Mode

FLAGS = [flag for group in GROUPS.values() for flag in group]
VALUES = {
    "--device": "cpu",
    "--set": "n=1",
    "--sweep": "n=1,2",
    "--with": "train.py:inputs",
    "--keep": "fixes.py",
    "--try": "tf32",
    "--what-if": "fast",
    "--time": "2",
    "--repeat": "8",
    "--width": "0.2%",
    "--threads": "2",
    "--ranks": "2",
    "--seed": "3",
    "--timeout": "9",
    "--telemetry": "off",
    "--profile": "off",
    "--json": "r.json",
    "--output": "run.jsonl",
    "--share": "class",
    "--listen": "8001",
    "--fail-below": "1.2x",
    "--fail-if-slower": "3%",
    "--gate": "gpulab.toml",
    "--junit": "j.xml",
    "--from-start": "1000",
    "--plot": "p.png",
    "--export": "p.html",
    "--trace": "t.json",
    "--exercise": "row_norms",
    "--arch": "sm_90",
    "--top": "3",
    "--sort": "total",
    "--group-by": "line",
}
"""A value of each flag that takes one."""


def given(*arguments):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser)
    return parser.parse_args(arguments)


def words_of(flag):
    return [flag.name, VALUES[flag.name]] if flag.name in VALUES else [flag.name]


def test_what_was_not_given_is_not_there():
    assert vars(given()) == {}


def test_every_flag_has_a_help_text_and_sets_its_destination():
    for flag in FLAGS:
        assert flag.options["help"], flag.name
        assert set(vars(given(*words_of(flag)))) == {flag.destination}


@pytest.mark.parametrize("mode", list(Mode))
def test_a_flag_is_taken_by_its_modes_and_refused_by_all_others(mode):
    expected = {}
    for flag in FLAGS:
        names = {other: str(other) for other in Mode}
        if Mode.FOLLOW in (mode, *flag.modes):  # which is `--run` too
            names |= {Mode.RUN: "--run WHAT", Mode.FOLLOW: "--run -- PROGRAM"}
        modes = " or ".join(names[other] for other in Mode if other in flag.modes)
        refused = f"{names[mode]} does not take {flag.name}; it requires {modes}"
        expected[flag.name] = None if mode in flag.modes else refused
    assert {flag.name: flag_problem(mode, given(*words_of(flag))) for flag in FLAGS} == expected


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_a_flag_with_a_value_is_given_once(flag):
    twice = [*words_of(flag), *words_of(flag)]
    if flag.options.get("action") in ("append", "store_true"):
        given(*twice)
        return
    with pytest.raises(argparse.ArgumentError, match="given twice: write it once"):
        given(*twice)


def test_a_mode_is_given_once():
    with pytest.raises(argparse.ArgumentError, match="given twice"):
        given("--replay", "a", "--replay", "b")


def test_several_flags_are_refused_together():
    problem = flag_problem(Mode.DOCTOR, given("--device", "cpu", "--smoke", "--json"))
    required = "they require the screen or --run or --compare or --fleet"
    assert problem == f"--doctor does not take --device, --smoke; {required}"
    # no mode takes both
    problem = flag_problem(Mode.LIST, given("--quick", "--ptx"))
    assert problem == "--list does not take --quick, --ptx"


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        ([], Mode.SCREEN),
        (["--device", "cpu"], Mode.SCREEN),
        (["--list"], Mode.LIST),
        (["--list", "folder"], Mode.LIST),
        (["--run", "a", "b"], Mode.RUN),
        (["--guide"], Mode.GUIDE),
        (["--guide", "telemetry"], Mode.GUIDE),
        (["--doctor"], Mode.DOCTOR),
        (["--fleet", "folder"], Mode.FLEET),
        (["--calibrate", "--seed", "1"], Mode.CALIBRATE),
        (["--new", "x.py"], Mode.NEW),
        (["--replay"], Mode.REPLAY),
        (["--replay", "run.jsonl"], Mode.REPLAY),
        (["--show", "x.py"], Mode.SHOW),
        (["--from-trace", "t.json", "x.py"], Mode.FROM_TRACE),
    ],
)
def test_one_flag_chooses_the_mode(arguments, mode):
    chosen = [flag.mode for flag in MODES if flag.is_chosen(given(*arguments))]
    assert chosen == [mode] * (mode != Mode.SCREEN)


def test_two_flags_cannot_choose():
    with pytest.raises(argparse.ArgumentError, match="not allowed with"):
        given("--list", "--run", "all")


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["--run", "a", "--run", "b"], (["a", "b"], "options")),
        (["--list"], ([], "options")),
        (["--guide"], ([],)),
        (["--doctor"], ("options",)),
        (["--calibrate"], ("options",)),
    ],
)
def test_a_mode_is_carried_out_with_the_value_of_its_flag_where_it_has_one(
    monkeypatch, arguments, passed
):
    calls = []

    def function(*values, **_):
        calls.append(values)
        return 3

    monkeypatch.setattr(modes, "import_module", lambda name: SimpleNamespace(**names))
    names = {mode_flag.function.partition(":")[2]: function for mode_flag in MODES}
    namespace = given(*arguments)
    (chosen,) = [mode_flag for mode_flag in MODES if mode_flag.is_chosen(namespace)]
    assert chosen.carry_out(namespace, lambda: "options") == 3
    assert calls == [passed]


def test_help_alone_is_one_screen_with_every_mode():
    lines = help_text(["--help"]).splitlines()
    assert {mode_flag.mode for mode_flag in MODES} == set(Mode) - {Mode.SCREEN, Mode.FOLLOW}
    assert all(any(f"  {flag.mode} " in line for line in lines) for flag in MODES)
    assert len(lines) <= 22  # a terminal of 24, with the command and the next prompt
    assert max(map(len, lines)) <= 80


def test_the_help_of_a_mode_that_is_given_its_value_is_that_of_the_mode():
    assert help_text(["--run=x.py", "--help"]) == help_text(["--run", "--help"])


@pytest.mark.parametrize("mode", list(Mode))
def test_the_help_of_a_mode_has_its_flags_and_no_others(mode, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["." if mode == Mode.SCREEN else mode, "-h"]
    if mode == Mode.FOLLOW:
        words = ["--run", "-h", "--"]
    page = help_text(words)
    flags_of_page, _, _ = page.partition("examples:")
    listed = re.findall(r"^  (--[a-z-]+)", flags_of_page, re.MULTILINE)
    assert sorted(listed) == sorted(flag.name for flag in FLAGS if mode in flag.modes)
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize(
    "mode", [Mode.LIST, Mode.GUIDE, Mode.NEW, Mode.SHOW, Mode.DOCTOR, Mode.FROM_TRACE]
)
def test_modes_that_measure_nothing_take_no_flag_of_a_run(mode):
    taken = {flag.name for flag in FLAGS if mode in flag.modes}
    of_show = {"--ptx", "--sass", "--arch", "--set"} if mode == Mode.SHOW else set()
    assert taken <= {"--ascii", "--json", "--exercise", "--solution", "--top"} | of_show


def test_the_screen_takes_what_refines_its_runs():
    taken = {flag.name for flag in FLAGS if Mode.SCREEN in flag.modes}
    assert taken >= {
        "--device",
        "--set",
        "--time",
        "--threads",
        "--seed",
        "--smoke",
        "--telemetry",
        "--quick",
        "--ascii",
    }
    assert not taken & {
        "--sweep",
        "--output",
        "--json",
        "--fail-below",
        "--plot",
        "--export",
        "--trace",
    }


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--set", "n=1", "--set", "name=a=b"], {"chosen": [("n", "1"), ("name", "a=b")]}),
        (["--sweep"], {"sweep": ""}),
        (["--json"], {"json": "-"}),
        (["--time", "0.5"], {"time_s": 0.5}),
        (["--repeat", "8"], {"repeat": 8}),
        (["--width", "0.2%"], {"width": 0.002}),
        (["--width", "0.002"], {"width": 0.002}),
        (
            ["--fail-below", "1.2x", "--fail-below", "fused=1.5"],
            {"fail_below": [("", 1.2), ("fused", 1.5)]},
        ),
        (["--fail-if-slower"], {"fail_if_slower": 0.03}),
        (["--fail-if-slower", "5%"], {"fail_if_slower": 0.05}),
        (["--telemetry", "GPU-12ab/3"], {"telemetry": "GPU-12ab/3"}),
        (["--telemetry", "1"], {"telemetry": "1"}),
        (["--threads", "16"], {"threads": 16}),
        (["--seed", "-9223372036854775807"], {"seed": -(2**63 - 1)}),
        (["--timeout", "604800"], {"timeout_s": 604800.0}),
    ],
)
def test_values_are_read(arguments, values):
    assert vars(given(*arguments)) == values


@pytest.mark.parametrize(
    ("task", "name", "file"),
    [
        ({"SLURM_PROCID": "17", "RANK": "3"}, "runs/%N-%t.jsonl", "runs/node-7-17.jsonl"),
        ({"RANK": "3"}, "%t.jsonl", "3.jsonl"),
        ({"JOB_COMPLETION_INDEX": "5"}, "%t%%t.jsonl", "5%t.jsonl"),
        ({}, "%N-%t-%x.jsonl", "node-7-0-%x.jsonl"),
    ],
)
def test_each_task_of_a_job_has_a_run_file_of_its_own(monkeypatch, task, name, file):
    for variable in ("SLURM_PROCID", "RANK", "JOB_COMPLETION_INDEX"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in {"GPULAB_HOST": "node-7.cluster", **task}.items():
        monkeypatch.setenv(variable, value)
    assert str(given("--output", name).output) == file


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--set", "n", "write NAME=VALUE"),
        ("--set", "1n=3", "write NAME=VALUE"),
        ("--time", "0", "not a number of seconds above 0"),
        ("--time", "inf", "not a number of seconds above 0"),
        ("--timeout", "soon", "not a number of seconds above 0"),
        ("--time", "1e300", "and at most 604800"),
        ("--timeout", "604801", "and at most 604800"),
        ("--repeat", "1", "not a number of runs, 2 or more"),
        ("--repeat", "many", "not a number of runs, 2 or more"),
        ("--width", "0", "not a share, such as 3%"),
        ("--width", "100%", "not a share"),
        ("--width", "nan%", "not a share"),
        ("--time", "nan", "and at most 604800"),
        (
            "--seed",
            str(2**63),
            "not a whole number between -9223372036854775807 and 9223372036854775807",
        ),
        (
            "--seed",
            "1" * 100_000,
            "111[.]{3} .99900 more characters.' is not a whole number between",
        ),
        ("--seed", "1.5", "not a whole number"),
        ("--fail-below", "nanx", "not a speedup, such as 1.2x"),
        ("--telemetry", "9" * 1000, "not on, off, or a GPU's index or UUID"),
        ("--output", "\udcff.jsonl", "write a path in UTF-8"),
        ("--trace", "\udcff.json", "write a path in UTF-8"),
        ("--json", "", "'': write the name of a file"),
        ("--output", "", "'': write the name of a file"),
        ("--trace", "t" * 300 + "/t.json", "write FILE.json, in a folder that exists"),
        ("--top", "201", "not a number of operations from 1 to 200"),
        ("--threads", "0", "not a number of threads, 1 or more"),
        ("--telemetry", "gpu", "not on, off, or a GPU's index or UUID"),
        ("--fail-below", "fast", "not a speedup, such as 1.2x"),
        ("--fail-below", "a b=1.2x", "write 1.2x, or VARIANT=1.2x"),
        ("--fail-if-slower", "110%", "not a share, such as 3%"),
        ("--trace", "t.txt", "write FILE.json, in a folder that exists"),
        ("--trace", "nowhere/t.json", "write FILE.json, in a folder that exists"),
    ],
)
def test_a_wrong_value_says_what_to_write(flag, value, message):
    with pytest.raises(argparse.ArgumentError, match=message):
        given(flag, value)
