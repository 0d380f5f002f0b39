"""The bill of a program: each second of a process once, with the line of the program; against what
the program measured of itself.
"""

import json
import sys
import time
from pathlib import Path

import pytest

from gpulab.features.bill.events import Look
from gpulab.features.bill.report import _by_step

PLANTED = """
import json, sys, time

TEXT = json.dumps({str(i): list(range(20)) for i in range(2000)})
spent = {}


def counted(name, clock, function):
    began = clock()
    function()
    spent[name] = spent.get(name, 0.0) + clock() - began


def parse():
    return json.loads(TEXT)


def parse_slowly():
    for _ in range(20):
        parse()


def loop():
    total = 0
    for i in range(400_000):
        total += i * i
    return total


def wait():
    time.sleep(0.2)


for _ in range(12):
    counted("parse", time.thread_time, parse_slowly)
    counted("loop", time.thread_time, loop)
    counted("wait", time.perf_counter, wait)
print(json.dumps(spent))
"""
WORKERS = """
import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        total = 0
        for i in range(300_000):
            total += i
        return torch.tensor([float(total)])


if __name__ == "__main__":
    for _ in range(2):
        for batch in DataLoader(Slow(), batch_size=4, num_workers=1):
            batch.sum()
"""
SIGNALS = """
import signal, threading, os, time

signal.signal(signal.SIGUSR1, lambda *_: None)
threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGUSR1)).start()
began = time.perf_counter()
signal.pause()
print(time.perf_counter() - began > 0.5)
began = time.perf_counter()
time.sleep(0.3)
print(time.perf_counter() - began >= 0.3)
print(os.read(os.pipe()[0], 1) if os.getenv("NEVER") else signal.getsignal(signal.SIGALRM))
"""

REPLACED = """
import os, sys, time


def spin():
    began = time.thread_time()
    while time.thread_time() - began < 0.5:
        pass


spin()
try:
    os.execv("/is/not/there", ["there"])
except FileNotFoundError as error:
    assert error.__traceback__.tb_next is None
os.execvp(sys.executable, [sys.executable, "-c", "print('replaced')"])
"""


def bills(lab, program, *flags):
    """(what the program printed, its bills)."""
    target = lab.folder / "r.json"
    command = (sys.executable, program)
    finished = lab.call("--run", "--telemetry", "off", "--json", target, *flags, "--", *command)
    return finished, json.loads(target.read_text())["runs"][0]["bill"]["bills"]


@pytest.fixture(scope="module")
def planted(module_lab):
    module_lab.write("planted.py", PLANTED)
    finished, (bill,) = bills(module_lab, "planted.py", "--refresh", "1")
    return finished, bill


def test_the_rows_are_all_the_time_from_the_start_to_the_end(planted):
    _, bill = planted
    rows = {row["cause"]: row["seconds"] for row in bill["rows"] if not row["file"]}
    assert bill["ended"]
    assert sum(row["seconds"] for row in bill["rows"]) == pytest.approx(bill["wall_s"], rel=1e-6)
    assert rows.get("unbooked", 0.0) < 0.03 * bill["wall_s"]


@pytest.mark.parametrize(
    ("name", "function", "waits"),
    [("parse", "parse", False), ("loop", "loop", False), ("wait", "wait", True)],
)
def test_what_a_function_takes_is_what_it_measured_of_itself(planted, name, function, waits):
    finished, bill = planted
    truth_s = json.loads(finished.stdout)[name]
    rows = [row for row in bill["rows"] if row["function"] == function]
    taken_s = sum(row["waited_s"] if waits else row["seconds"] - row["waited_s"] for row in rows)
    assert taken_s == pytest.approx(truth_s, rel=0.35)
    assert rows[0]["file"].endswith("planted.py")


def test_workers_of_a_loader_have_a_bill_with_their_own_line(lab):
    lab.write("load.py", WORKERS)
    _, (program, workers) = bills(lab, "load.py", "--profile", "off")
    assert {"data", "start or end data workers"} & {row["cause"] for row in program["rows"]}
    assert workers["role"] == "loader worker"
    assert workers["processes"] == 2
    named = [row for row in workers["rows"] if row["file"]]
    assert named[0]["function"] == "Slow.__getitem__"


def test_a_program_that_waits_for_signals_is_not_woken_by_samples(lab):
    lab.write("waits.py", SIGNALS)
    finished, _ = bills(lab, "waits.py")
    assert finished.stdout.split("\n")[:3] == ["True", "True", "0"]


def test_it_is_printed_with_the_line_and_while_the_program_runs_where_that_is_asked_for(planted):
    finished, bill = planted
    so_far, at_the_end = finished.stderr.split("planted.py · ", 1)
    assert "of the program went so far" in so_far
    assert "of the program went\n" in at_the_end
    assert "planted.py" in at_the_end
    row = next(row for row in bill["rows"] if row["function"] == "loop")
    assert f"{row['lines'][0]}: {row['source'][:12]}" in at_the_end


RANKS = """
import os
import torch, torch.distributed as dist, torch.multiprocessing as mp


def late(rank):
    total = 0
    for i in range(300_000 if rank else 0):
        total += i


def work(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29671", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    x = torch.ones(1000)
    for _ in range(100):
        late(rank)
        dist.all_reduce(x)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""


@pytest.mark.slow
def test_ranks_that_a_python_starts_are_beside_each_other(lab):
    lab.write("ranks.py", RANKS)
    finished, found = bills(lab, "ranks.py", "--profile", "off")
    assert sorted(bill["rank"] for bill in found if bill["rank"] is not None) == [0, 1]
    assert found[0]["rank"] == 0
    _, table = finished.stderr.split("seconds of 2 ranks, where they differ most\n")
    assert "ranks.py late" in " ".join(table.splitlines()[1:4])


def _looks(*sizes, steps=(0, 25, 50, 75, 100)):
    times = (0.0, 1.0, 2.0, 3.0, 100.0)
    return [
        Look(at=at, resident_bytes=size, steps=count, device_bytes=0)
        for at, size, count in zip(times, sizes, steps, strict=True)
    ]


def test_memory_grows_with_the_steps_where_it_does_alike_in_three_windows():
    def growth(*sizes):
        looks = _looks(*sizes)
        return _by_step([(look.steps, look.resident_bytes) for look in looks], 10_000)

    grows = growth(1_000, 1_250, 1_500, 1_760, 2_000)
    assert (grows.bytes_per_step, grows.steps_left) == (pytest.approx(10, rel=0.05), 1_000)
    assert growth(1_000, 5_000, 5_000, 5_000, 5_000) is None
    assert growth(1_000, 1_250, 1_500, 1_510, 2_000) is None


STEPS = """
import time, torch

parameter = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.1)
for step in range(200):
    parameter.grad = torch.ones(1)
    time.sleep(0.1 if step % 20 == 19 else 0.003)
    optimizer.step()
"""


def test_the_slow_ones_of_a_kind_of_steps_say_where_they_are(lab):
    lab.write("steps.py", STEPS)
    finished, (bill,) = bills(lab, "steps.py", "--profile", "off")
    (steps,) = bill["steps"]
    assert (steps["kind"], steps["count"]) == ("train", 200)
    assert steps["slow"] >= 10
    assert steps["longest_s"] >= 0.1
    # on a busy machine others may have the CPU for longer
    assert [8] in [row["lines"] for row in steps["rows"][:2]]
    assert "200 steps (train)" in finished.stderr


def test_steps_of_a_kind_that_is_not_kept_are_in_no_other(tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[3] / "gpulab/features/program/agent"))
    import gpulab_samples

    samples = gpulab_samples.Samples(str(tmp_path), None)
    for number in range(6):
        samples.step_ended(f"kind {number}")
    time.sleep(0.2)
    samples.step_ended("a seventh")
    samples.step_ended("kind 0")
    assert samples._kinds["kind 0"].longest_s < 0.2


THREADS = """
import json, subprocess, threading, time
def spins(until):
    while time.monotonic() < until:
        pass
until = time.monotonic() + 2.0
thread = threading.Thread(target=spins, args=(until,), name="spinner")
thread.start()
while time.monotonic() < until:
    json.loads(json.dumps(list(range(20_000))))
thread.join()
subprocess.run(["sleep", "0.5"])
"""


def test_a_thread_that_takes_the_interpreter_is_named_with_what_the_main_one_waited(lab):
    lab.write("threads.py", THREADS)
    _, (process, *_) = bills(lab, "threads.py", "--profile", "off")
    (thread,) = process["other_threads"]
    assert thread["thread"] == "spinner"
    assert thread["row"]["function"] == "spins"
    assert thread["ran_s"] > 0.2
    assert 0 < thread["main_waited_s"] <= thread["ran_s"]
    # the module that the program called, not what waits in it
    assert {"json", "subprocess"} <= {row["of"] for row in process["rows"]}


OPERATORS = """
DATA = bytes(20_000_000)


def product():
    return DATA + DATA


def passes_on(data):
    return data


for _ in range(60):
    passes_on(product())
"""


def test_what_an_operator_takes_stands_at_its_line(lab):
    lab.write("operators.py", OPERATORS)
    _, (process, *_) = bills(lab, "operators.py", "--profile", "off")
    first, *others = [row for row in process["rows"] if row["file"]]
    assert (first["function"], first["lines"]) == ("product", [6])
    assert sum(row["seconds"] for row in others) < 0.3 * first["seconds"]


def test_what_ran_before_an_exec_is_in_the_bill(lab):
    lab.write("replaced.py", REPLACED)
    finished, (bill,) = bills(lab, "replaced.py")
    assert finished.code == 0
    assert "replaced" in finished.stdout
    spun_s = sum(row["seconds"] for row in bill["rows"] if row["function"] == "spin")
    assert spun_s > 0.4
