"""Does the lab end well, whatever signal comes whenever?

python benchmarks/signals.py [TRIALS] [KILLS] [SEED]     # 200 and 60 without an argument

A trial starts the program, sends a signal or a burst at a random moment of its usual duration, and
looks at what is left: the exit code, the end of the run file, the state of the terminal, a
traceback, processes. A kill takes one of the program's processes away by SIGKILL at a random
moment. What Python itself does before its first line of gpulab is counted apart.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from conftest import Lab
from signal_faces import SCENARIO, App, Headless, OnTerminal, Try, WhatIf, outcome_of

from gpulab.core.run_file import read_run_file

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
HANG_UP = "hang-up"
KINDS = (*ENDING, signal.SIGWINCH, signal.SIGTSTP)


FACES = {
    "headless, files": Headless,
    "headless, terminal": OnTerminal,
    "app": App,
    "--try": Try,
    "--what-if": WhatIf,
}


def new_lab():
    lab = Lab(Path(tempfile.mkdtemp()))
    lab.write("tiny.py", SCENARIO)
    return lab


def duration_of(face):
    lab, started = new_lab(), time.monotonic()
    program = face(lab)
    code = program.end()
    if code not in (0, 7):
        sys.exit(f"{face.__name__} ended with {code}: {program.output.decode()}")
    return time.monotonic() - started


def send(program, which, chance):
    """One signal, to the process or as a terminal does to its group; whether it was still there."""
    if program.ended:
        return False
    if which == HANG_UP:
        program.hang_up()
        return True
    kill = os.kill if chance.random() < 0.5 else os.killpg
    try:
        kill(program.pid, which)
        if which == signal.SIGTSTP:
            program.pass_time(chance.uniform(0.02, 0.2))
            kill(program.pid, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def signal_trial(face, duration_s, chance):
    lab = new_lab()
    kinds = KINDS if issubclass(face, Headless) else [*KINDS, HANG_UP]
    burst = [chance.choice(kinds)]
    if chance.random() < 0.5 and burst[0] != HANG_UP:
        burst += chance.choices(KINDS, k=chance.randint(1, 4))
    moment = chance.uniform(0, duration_s)
    program = face(lab)
    program.pass_time(moment)
    sent = []
    for which in burst:
        if send(program, which, chance):
            sent.append(which)
        program.pass_time(chance.choice((0, 0, 0.002, 0.02)))
    ending = [
        signal.SIGHUP if which == HANG_UP else which
        for which in sent
        if which in (*ENDING, HANG_UP)
    ]
    names = "+".join(which if which == HANG_UP else which.name for which in burst)
    label = f"{names} at {moment:.2f} s of {duration_s:.2f}"
    try:
        code = program.end()
    except (TimeoutError, subprocess.TimeoutExpired):
        problems = ["hangs"]
        for pid in lab.processes():
            os.kill(pid, signal.SIGKILL)
        return names, label, problems, program.output
    problems = [f"code {code}"] if code not in codes_after(ending) else []
    problems += remains_of(lab, program)
    run_ends = [outcome_of(file) for file in lab.folder.rglob("*.jsonl")]
    if None in run_ends:
        problems.append("run file without its end")
    if code == 130 and face in (Headless, OnTerminal) and run_ends != ["cancelled"]:
        problems.append(f"130 after a run that is {run_ends}")
    if (lab.folder / "out.json").exists() and not (lab.folder / "out.json").read_bytes().endswith(
        b"}\n"
    ):
        problems.append("half a JSON")
    return names, label, problems, program.output


def codes_after(ending):
    return {130, *(-which for which in ending)} if ending else {0, 7}


def remains_of(lab, program):
    problems = program.terminal_problems()
    if b"Traceback" in program.output:
        problems.append(
            "traceback" if b"/gpulab/" in program.output else "traceback of Python's own start"
        )
    if not lab.none_left(within=5.0):
        problems.append(f"left behind: {lab.processes()}")
        for pid in lab.processes():
            os.kill(pid, signal.SIGKILL)
    if list(lab.folder.glob(".gpulab-*")):
        problems.append("part of a file left")
    return problems


def kinds_of(lab, parent):
    """Every process of a program by what it is."""
    kinds = {}
    for pid, command in lab.processes().items():
        try:
            of = psutil.Process(pid).ppid()
        except psutil.Error:
            continue
        if pid == parent:
            kinds[pid] = "parent"
        elif b"gpulab.features.telemetry" in command:
            kinds[pid] = "telemetry"
        elif b"sleep" in command:
            kinds[pid] = "started by the step"
        elif b"gpulab.engine" in command:
            kinds[pid] = "supervisor" if of == parent else "worker"
    return kinds


def kill_trial(face, duration_s, chance):
    lab = new_lab()
    moment = chance.uniform(0.05, duration_s)
    program = face(lab)
    program.pass_time(moment)
    kinds = kinds_of(lab, program.pid)
    if program.ended or not kinds:
        return "ended before", "", [], b""
    kind = chance.choice(sorted(set(kinds.values())))
    victim = next(pid for pid in kinds if kinds[pid] == kind)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        kind = "ended before"
    label = f"{kind} at {moment:.2f} s of {duration_s:.2f}"
    if isinstance(program, App):
        program.pass_time(duration_s)
        if not program.ended:
            program.leave()
    try:
        code = program.end()
    except (TimeoutError, subprocess.TimeoutExpired):
        return kind, label, ["hangs"], program.output
    codes = (-9,) if kind == "parent" else (0, 3, 7)
    if "look" in kind:
        codes = (0, 2)
    problems = [f"code {code}"] if code not in codes else []
    problems += [
        problem
        for problem in remains_of(lab, program)
        if kind != "parent" or problem.startswith("left")
    ]
    for file in lab.folder.rglob("*.jsonl"):
        if outcome_of(file) is None and kind != "parent":
            problems.append("run file without its end")
        elif file.stat().st_size and read_run_file(file).garbled:
            problems.append("garbled run file")
    return kind, label, problems, program.output


def series(title, count, trial, durations, chance):
    table = defaultdict(Counter)
    failed = 0
    for number in range(count):
        name = list(FACES)[number % len(FACES)]
        kind, label, problems, output = trial(FACES[name], durations[name], chance)
        row = table[name, kind if "+" not in kind else "burst"]
        row["trials"] += 1
        row.update(problems)
        failed += any(not problem.startswith("traceback of Python") for problem in problems)
        if problems:
            print(f"  {name}: {label}: {'; '.join(problems)}\n    {output[-600:]!r}", flush=True)
    print(f"\n{title}: {count} trials, {failed} failed")
    for (name, kind), row in sorted(table.items()):
        problems = ", ".join(
            f"{count} {problem}" for problem, count in row.items() if problem != "trials"
        )
        print(f"  {name:20}{kind:14}{row['trials']:4}  {problems or 'all ended well'}")
    return failed


def main(trials=200, kills=60, seed=0):
    # a shell starts its background jobs with some of them ignored, and so would be the program's
    for which in ENDING:
        signal.signal(which, signal.SIG_DFL)
    chance = random.Random(seed)
    durations = {name: duration_of(face) for name, face in FACES.items()}
    print(
        "usual durations: " + ", ".join(f"{name} {took:.1f} s" for name, took in durations.items()),
        flush=True,
    )
    failed = series("signals", trials, signal_trial, durations, chance)
    return failed + series("kills", kills, kill_trial, durations, chance)


def in_a_folder(*arguments):
    with tempfile.TemporaryDirectory() as tempfile.tempdir:
        return main(*arguments)


if __name__ == "__main__":
    sys.exit(bool(in_a_folder(*map(int, sys.argv[1:]))))
