"""`--nsys FILE`: what becomes of the report, of the program and of the measurement, whatever nsys
does. A script is in its place: it runs its target, and writes a report or fails as nsys does.
"""

import json
import re
import signal
import sys
import time

import pytest

from gpulab.cli import main
from gpulab.features.counters.nsys import NsysReport

NSYS = """\
    #!/bin/sh
    shift
    for word in "$@"; do case $word in --output=*) out=${word#--output=};; esac; done
    echo "$@" >options
    [ "$NSYS_DOES" = refuses ] && echo "unrecognised option" >&2 && exit 1
    while case $1 in --*) true;; *) false;; esac; do shift; done
    NSYS_PROFILING_SESSION_ID=1 "$@"; code=$?
    case $NSYS_DOES in
    half) echo events >"$out.qdstrm"; echo "Importer failed"; exit 1;;
    hangs) sleep 300;;
    esac
    echo report >"$out.nsys-rep"
    [ "$NSYS_DOES" = keeps ] || echo tables >"$out.sqlite"
    exit $code
"""
SCENARIO = '''
    """Steps: slow and quick."""

    import os
    from gpulab import Scenario, Work

    scenario = Scenario(topic="tests", env={"OF_THE_SCENARIO": "set"})

    def work(name, times):
        def step():
            if "NSYS_PROFILING_SESSION_ID" in os.environ:
                with open("ran", "a") as file:
                    file.write(f"{name} {os.environ['OF_THE_SCENARIO']}\\n")
            return max(sum(range(5_000)) for _ in range(times))
        return Work(step)

    @scenario.variant
    def slow(lab):
        """Much."""
        return work("slow", 40)

    @scenario.variant
    def quick(lab):
        """Little."""
        return work("quick", 2)
'''
FILE = "r.nsys-rep"


@pytest.fixture
def nsys(lab):
    """Put the script on PATH; `nsys(does)` says what it does."""
    folder = lab.folder / "bin"
    folder.mkdir()
    lab.env["PATH"] = f"{folder}:{lab.env['PATH']}"

    def does(what=""):
        script = lab.write("bin/nsys", NSYS)
        script.chmod(0o755)
        lab.env["NSYS_DOES"] = what

    does()
    return does


def follow(lab, *command):
    flags = ("--telemetry", "off", "--output", lab.folder / "run.jsonl", "--json", "r.json")
    return lab.call("--run", "--nsys", FILE, *flags, "--", *command)


def ran(lab):
    return set((lab.folder / "ran").read_text().splitlines())


def test_without_nsys_nothing_runs_and_what_installs_it_is_said(lab):
    lab.env["PATH"] = "/nowhere"
    done = follow(lab, "/bin/sh", "-c", "echo ran >ran")
    assert done.code == 2
    assert "no nsys on PATH; apt install nsight-systems-cli" in done.stderr
    assert not (lab.folder / "ran").exists()


def test_steps_of_the_fastest_variant_run_under_nsys_after_the_measurement(lab, nsys):
    path = lab.write("ways.py", SCENARIO)
    done = lab.run(path, "--smoke", "--nsys", FILE, fresh=True)
    assert done.code == 0, done.stderr
    assert ran(lab) == {"quick set"}  # and none of the steps that were measured
    assert f"nsys report: {lab.folder / FILE}" in done.stderr
    assert f"gpulab --why {lab.folder / 'r.sqlite'}" in done.stderr
    assert "--capture-range" not in (lab.folder / "options").read_text()  # no CUDA on a CPU
    steps = int(re.search(r"(\d+) steps of quick under nsys", done.stderr)[1])
    assert (lab.folder / "ran").read_text().count("\n") >= steps


def test_a_program_has_its_exit_code_and_what_was_not_measured_is_said(lab, nsys):
    done = follow(lab, sys.executable, "-c", "print('of the program'); raise SystemExit(7)")
    assert done.code == 7
    assert done.stdout == "of the program\n"
    assert f"nsys report: {lab.folder / FILE}" in done.stderr
    result = json.loads((lab.folder / "r.json").read_text())
    (run,) = result["runs"]
    assert run["program"]["code"] == 7
    assert "under_nsys" in {finding["code"] for finding in run["explanations"]}
    assert "--kill=none" in (lab.folder / "options").read_text()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("half", r"nsys made no report: .* may convert .*/r\.qdstrm"),
        ("keeps", rf"nsys export --type sqlite .*/{FILE}"),
    ],
)
def test_what_nsys_left_is_said(lab, nsys, does, said):
    nsys(does)
    done = follow(lab, "/bin/sh", "-c", "exit 7")
    assert done.code == 7
    assert re.search(said, done.stderr)


@pytest.mark.slow
def test_a_report_of_before_is_none_of_this_run(lab, nsys):
    (lab.folder / FILE).write_text("of before")
    nsys("half")
    path = lab.write("ways.py", SCENARIO)
    done = lab.run(path, "--smoke", "--nsys", FILE, fresh=True)
    assert done.code == 0
    assert "nsys made no report: Importer failed; QdstrmImporter" in done.stderr
    assert (lab.folder / FILE).read_text() == "of before"


def test_a_program_that_nsys_does_not_start_is_started_without(lab, nsys):
    nsys("refuses")
    done = follow(lab, "/bin/sh", "-c", "echo once >>ran; exit 7")
    assert done.code == 7
    assert (lab.folder / "ran").read_text() == "once\n"
    assert "nsys did not start the program: it runs without" in done.stderr
    assert "it ran under nsys" not in done.stderr


def test_an_nsys_that_hangs_at_its_end_is_ended(lab, nsys, monkeypatch, capfd):
    monkeypatch.setattr(NsysReport, "limit_s", 1.0)
    monkeypatch.chdir(lab.folder)
    nsys("hangs")
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    command = ["--run", "--nsys", FILE, "--telemetry", "off", "--", "/bin/sh", "-c", "exit 7"]
    assert main(command) == 7
    assert "nsys made no report" in capfd.readouterr().err
    assert lab.none_left()


@pytest.mark.slow
def test_ctrl_c_while_nsys_writes_leaves_nothing(lab, nsys):
    nsys("hangs")
    path = lab.write("ways.py", SCENARIO)
    flags = ("--smoke", "--device", "cpu", "--telemetry", "off", "--nsys", FILE)
    process = lab.start("--run", path, *flags)
    deadline = time.monotonic() + 60
    while not (lab.folder / "ran").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert b"quick" in output  # what was measured is printed before
    assert lab.none_left()
