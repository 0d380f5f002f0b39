"""What was read is measured, profiled and kept, whatever the file, or a compiled one beside it,
holds by then.
"""

import importlib.util
import py_compile
from hashlib import sha256

import pytest
from finished_runs import events_of

from gpulab.core.events import FindingMade, RunStarted

SOURCE = "\ufeff" + (
    '# -*- coding: utf-8 -*- a tail of odd characters: \u202e \x7f \U0001d11e \\ "\r\n'
    "import inspect, pathlib, torch\r\n"
    "pathlib.Path(__file__).write_text('broken(')\r\n"
    "def step():\r\n"
    "    assert '# as it was read' in inspect.getsource(step)  # as it was read\r\n"
    "    return torch.ones(8).sum()\r\n"
)


@pytest.fixture(scope="module")
def finished(module_lab):
    """A file that rewrites itself as it runs, twice: to be measured, and to be profiled."""
    folder = module_lab.folder
    path = folder / "train.py"
    other = module_lab.write("other.py", f"open({str(folder / 'ran')!r}, 'w')\ndef step(): ...\n")
    cached = importlib.util.cache_from_source(str(path))
    py_compile.compile(
        str(other), cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    path.write_bytes(SOURCE.encode())
    finished = module_lab.run("train.py:step", "--smoke", "--trace", "t.json")
    assert finished.code == 0, finished.stderr
    return finished


def test_a_file_that_rewrites_itself_is_measured_and_profiled_as_it_was_read(finished):
    folder = finished.run_file.parent
    assert (folder / "train.py").read_text() == "broken("
    assert (folder / "t.json").exists()
    assert not (folder / "ran").exists()
    codes = [event.finding.code for event in events_of(finished, FindingMade)]
    assert not [code for code in codes if code.startswith("profiling")]


def test_the_run_file_holds_what_ran(finished):
    (started,) = events_of(finished, RunStarted)
    subject = started.request.job.subject
    assert subject.source == SOURCE
    assert subject.source_sha256 == sha256(SOURCE.encode()).hexdigest()
