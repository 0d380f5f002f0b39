"""Steps whose critical path is known: pipelines of threads, phases one after the other, and
DataLoaders. Each part waits for so many milliseconds; `factors` make one of them shorter for real.
"""

import queue
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

from gpulab import Work

BATCHES = 8
PIPELINES = {
    "load_hidden": ("threads", {"load": 1.5, "compute": 4.0, "serial": 4.0}),
    "load_bound": ("threads", {"load": 6.0, "compute": 3.0, "serial": 4.0}),
    "phases": ("phases", {"first": 3.0, "second": 6.0, "third": 2.0}),
    "three_stages": ("stages", {"read": 1.5, "transform": 5.0, "compute": 3.0}),
    "fan_in": ("fan_in", {"left": 6.0, "right": 14.0, "joined": 6.0}),
    "workers_hidden": ("loader", {"loading": 2.0, "model": 5.0, "update": 1.5}),
    "workers_bound": ("loader", {"loading": 8.0, "model": 3.0}),
    "inline_loader": ("inline", {"loading": 3.0, "model": 5.0}),
}
"""What it is, and milliseconds of a pass through each part."""
HIDDEN = {
    ("load_hidden", "load"),
    ("load_bound", "compute"),
    ("three_stages", "read"),
    ("three_stages", "compute"),
    ("fan_in", "left"),
    ("workers_hidden", "loading"),
    ("workers_bound", "model"),
}
"""Parts that run beside a longer one: less of them gains what they take at the two ends of a
step.
"""


def step_of(lab, name, factors=None):
    """The work of one pipeline."""
    kind, times_ms = PIPELINES[name]
    seconds = {
        part: time_ms * 1e-3 * (factors or {}).get(part, 1.0) for part, time_ms in times_ms.items()
    }
    values = torch.rand(16)
    steps = {"threads": _threads, "phases": _phases, "stages": _stages, "fan_in": _fan_in}
    if kind in steps:
        run = steps[kind](lab, seconds)
        yield Work(lambda: run() or values * 2, inputs=values)
        return
    loader = _loader(seconds["loading"], workers=kind == "loader")
    run = _epoch(lab, loader, seconds)
    yield Work(lambda: run() or values * 2, inputs=values)
    loader._iterator = None


def _phases(lab, seconds):
    def run():
        for name, part_s in seconds.items():
            with lab.phase(name):
                time.sleep(part_s)

    return run


def _threads(lab, seconds):
    def run():
        ready = queue.Queue(1)
        thread = threading.Thread(target=_produce, args=(lab, "load", seconds["load"], ready))
        thread.start()
        for _ in range(BATCHES):
            ready.get()
            with lab.phase("compute"):
                time.sleep(seconds["compute"])
        thread.join()
        with lab.phase("serial"):
            time.sleep(seconds["serial"])

    return run


def _stages(lab, seconds):
    def transform(source, target):
        for _ in range(BATCHES):
            source.get()
            with lab.phase("transform"):
                time.sleep(seconds["transform"])
            target.put(None)

    def run():
        read, transformed = queue.Queue(1), queue.Queue(1)
        threads = [
            threading.Thread(target=_produce, args=(lab, "read", seconds["read"], read)),
            threading.Thread(target=transform, args=(read, transformed)),
        ]
        for thread in threads:
            thread.start()
        for _ in range(BATCHES):
            transformed.get()
            with lab.phase("compute"):
                time.sleep(seconds["compute"])
        for thread in threads:
            thread.join()

    return run


def _fan_in(lab, seconds):
    def beside():
        with lab.phase("left"):
            time.sleep(seconds["left"])

    def run():
        thread = threading.Thread(target=beside)
        thread.start()
        with lab.phase("right"):
            time.sleep(seconds["right"])
        thread.join()
        with lab.phase("joined"):
            time.sleep(seconds["joined"])

    return run


def _produce(lab, name, seconds, target):
    for _ in range(BATCHES):
        with lab.phase(name):
            time.sleep(seconds)
        target.put(None)


class _Slow(Dataset):
    def __init__(self, seconds):
        self._seconds = seconds

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        time.sleep(self._seconds)
        return torch.zeros(1)


def _loader(seconds, *, workers):
    how = {}
    if workers:
        how = {"num_workers": 1, "persistent_workers": True, "multiprocessing_context": "fork"}
    return DataLoader(_Slow(seconds), **how)


def _epoch(lab, loader, seconds):
    others = [name for name in seconds if name != "loading"]

    def run():
        for _ in loader:
            for name in others:
                with lab.phase(name):
                    time.sleep(seconds[name])

    return run
