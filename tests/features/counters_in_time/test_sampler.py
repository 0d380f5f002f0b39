"""The sampler itself, over stand-ins of the driver's library and of cupti-python: what it says, in
this Python, which gpulab is not imported in.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.features.counters_in_time import sampler

HERE = Path(__file__).parent
PACKAGE = {
    "cupti/__init__.py": "",
    "cupti/cupti.py": "class cuptiError(Exception): pass\n",
    "cupti/pm_sampling.py": """
import time


class Sample:
    def __init__(self, start, end, values):
        self.start_timestamp, self.end_timestamp, self.metric_values = start, end, values


class Collector:
    others = 0

    def __init__(self, device_index):
        self.enabled = self.decoded = False

    def enable(self):
        assert not Collector.others, "another one is enabled"
        self.enabled = True
        Collector.others += 1

    def configure(self, *, metrics, hardware_buffer_size, sampling_interval):
        if "unfit" in metrics:
            raise ValueError("Requested PM sampling configuration is not supported")
        if "denied" in metrics:
            raise PermissionError("Insufficient privileges for PM sampling")
        self.metrics = metrics

    def start(self):
        self.begin = time.time_ns()

    def stop(self):
        self.end = time.time_ns()

    def decode(self):
        assert not self.decoded, "a second decode ends in a segmentation fault"
        self.decoded = True
        values = [1.0] * len(self.metrics)
        middle = (self.begin + self.end) // 2
        broken = Sample(self.begin, middle, [float("nan")] * len(self.metrics))
        return [Sample(0, self.begin, values), broken, Sample(middle, self.end, values)]

    def disable(self):
        Collector.others -= self.enabled
        self.enabled = False
""",
    "cupti_python-13.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: cupti-python\nVersion: 13.4.0\n",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the sampler answers to lines."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("packages")
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    library = folder / "libcuda.so.1"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "cuda_standin.c"]
    subprocess.run(command, check=True)

    def ask(*lines):
        done = subprocess.run(
            [sys.executable, "-I", sampler.__file__, folder],
            input="".join(json.dumps(line) + "\n" for line in lines),
            capture_output=True,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


def asked(what, *metrics, **more):
    return {"do": what, "metrics": [*metrics], "interval_ns": 20_000, **more}


def test_it_samples_pass_after_pass_with_what_fits_together(answers):
    package, fits, started, stopped, _, uncounted, _, again = answers(
        {"device": 0},
        asked("supported", "one", "unfit", "other"),
        asked("start", "one", "other"),
        {"do": "stop"},
        asked("start", "one"),
        {"do": "stop", "decode": False},
        asked("start", "one"),
        {"do": "stop"},
    )
    assert package == {"answer": "13.4.0"}
    assert fits == {"answer": ["one", "other"]}
    assert started == {"answer": None}
    (first, sample) = stopped["answer"]
    assert first[0] == 0
    assert sample[0] < sample[1]
    assert sample[2:] == [1.0, 1.0]
    assert uncounted == {"answer": []}
    assert len(again["answer"]) == 2


def test_copies_of_known_size_are_sampled(answers):
    _, checked = answers({"device": 0}, asked("check", "one"))
    sizes = {place: size for place, (size, _) in checked["answer"].items()}
    assert sizes == {"inside": 4 << 28, "link": 1 << 28}
    assert all(samples for _, samples in checked["answer"].values())


def test_what_fails_is_an_error_and_the_next_line_is_answered(answers):
    assert answers({"device": 7}) == [{"error": "OSError: no GPU: cuDeviceGet returned 101"}]
    assert answers({"device": None}) == [{"error": "OSError: no GPU: this run is on the CPU"}]
    _, denied, started = answers({"device": 0}, asked("start", "denied"), asked("start", "one"))
    assert denied["error"].startswith("PermissionError")
    assert started == {"answer": None}
