"""Work that outlives its step is found: in threads, in processes, on streams of a device that is
simulated.
"""

import concurrent.futures
import os
import threading
from contextlib import suppress
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
from tables import files_of

from gpulab.core.machine import Device
from gpulab.core.statuses import CheckKind
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.features.checks import streams
from gpulab.features.checks.streams import Streams
from gpulab.scenario import Work

CHEATS, TWINS = files_of(Path(__file__).parents[1] / "gauntlet" / "cheats")
BESIDE = ("thread_finishes_later", "thread_drops_work")
CPU = torch.device("cpu")


@pytest.fixture
def one_thread(monkeypatch):
    """As a worker has by default: with more, the threads of a pool, which nobody accuses, do a part
    of the work. OpenMP counts for each thread anew, and its threads spin where others are busy.
    """
    of_one = {"initializer": torch.set_num_threads, "initargs": (1,)}
    pools = partial(concurrent.futures.ThreadPoolExecutor, **of_one)
    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", pools)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def examined(folder, files, name):
    """The reference and one variant of `elsewhere.py`."""
    path = folder / f"{name}.py"
    path.write_text(next(file for file in files if file.name == "elsewhere").text(only=name))
    spec = spec_from_file_location(f"beside_{path.stem}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    builder = Builder(WorkerLab(CPU, Device(kind="cpu", name=""), WorkerPosition(())), {}, 0, None)
    others = set(threading.enumerate())
    looks, results = Streams(CPU), {}
    for name, variant in module.scenario.variants.items():
        build = builder.build(variant)
        builder.first_step(build)
        results[name] = looks.examine(name, build, 4, 5e-4)
        build.close()
    for thread in set(threading.enumerate()) - others:
        # what is left of its work is none of the next test's; those of a pool stay
        thread.join(0.2)
    return results


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", BESIDE)
def test_what_goes_on_after_a_step_is_found(tmp_path, name):
    results = examined(tmp_path, CHEATS, name)
    assert results["reference"].ok
    assert results[name].check == CheckKind.STREAMS
    assert not results[name].ok
    assert results[name].reason.code in ("work_after_the_step", "busy_between_steps")


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", [*BESIDE, "unwaited_future", "asynchronous_array"])
def test_what_is_over_with_its_step_is_accused_of_nothing(tmp_path, name):
    results = examined(tmp_path, TWINS, name)
    assert [result.reason for result in results.values()] == [None, None]


@pytest.mark.parametrize("answers", [False, True])
def test_a_process_that_goes_on_is_found_and_one_that_answers_first_is_not(answers):
    asked, ask = os.pipe()
    answered, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ask)
        while os.read(asked, 1):
            sum(range(400_000))
            os.write(answer, b"x")
        os._exit(0)
    os.close(asked)
    os.set_blocking(answered, answers)

    def step():
        os.write(ask, b"x")
        with suppress(BlockingIOError):
            os.read(answered, 1)

    looks = Streams(CPU)
    # beside other work the process may not run at all while one of them lasts
    accused = any(
        not looks.examine("suspect", Build(Work(step), 0.0, None), 4, 1e-3).ok for _ in range(5)
    )
    os.close(ask)
    os.waitpid(pid, 0)
    assert accused != answers


class Gpu:
    """A device with a stream that the host waits for and another one; `now` is the host's clock."""

    def __init__(self):
        self.now = self.main = self.side = 0.0

    def current_stream(self, device):
        return self

    def synchronize(self, device=None):
        ends = (self.main,) if device is None else (self.main, self.side)
        self.now = max(self.now + 5e-6, *ends)

    def launch(self, stream, seconds):
        self.now += 2e-6
        setattr(self, stream, max(self.now, getattr(self, stream)) + seconds)

    def join(self):
        self.main = max(self.main, self.side)


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()
    monkeypatch.setattr(torch.cuda, "current_stream", gpu.current_stream)
    monkeypatch.setattr(torch.cuda, "synchronize", gpu.synchronize)
    monkeypatch.setattr(streams, "perf_counter", lambda: gpu.now)
    monkeypatch.setattr(streams, "sleep", lambda seconds: setattr(gpu, "now", gpu.now + seconds))
    monkeypatch.setattr(
        streams, "CpuOfOthers", lambda: type("Idle", (), {"watch": lambda self, seconds: 0.0})()
    )
    return gpu


def on_gpu(step):
    return Streams(torch.device("cuda:0")).examine(
        "suspect", Build(Work(step), 0.0, None), 50, 1e-4
    )


def test_a_side_stream_that_is_not_joined_is_found_on_short_and_on_single_steps(gpu):
    found = on_gpu(lambda: gpu.launch("side", 100e-6))
    assert not found.ok
    assert found.reason.code == "work_beside_the_stream"
    assert found.reason.values["host_s"] > found.reason.values["device_s"]


def test_one_that_is_slower_than_the_current_stream_is_found_on_many_steps(gpu):
    def step():
        gpu.launch("main", 8e-6)
        gpu.launch("side", 20e-6)

    assert not on_gpu(step).ok


def test_a_side_stream_that_is_joined_is_accused_of_nothing(gpu):
    def step():
        gpu.launch("side", 100e-6)
        gpu.join()

    assert on_gpu(step).ok
    assert on_gpu(lambda: gpu.launch("main", 100e-6)).ok
