"""Recorded runs: run files with the reports that are made of them, and a small one of today.

`python tests/recorded.py` stores the reports that today's code makes: only after a look at every
field that differs.
"""

import json
import lzma
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from found import finding

from gpulab.catalog.recordings import RECORDINGS
from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.run_file import RunFile, read_run_file
from gpulab.features.goodput.events import Profiled
from gpulab.features.goodput.recorded_operations import operations
from gpulab.headless.scripting import load
from gpulab.report.sentences import builtins_of
from gpulab.traces.trace import read_any

CORPUS = Path(__file__).parent / "corpus"
_REPORTS = CORPUS / "reports.json.xz"


def _found(folder, pattern):
    """The recorded run files of a folder, by name."""
    paths = sorted(folder.glob(pattern))
    return {str(path.relative_to(folder)).removesuffix(".jsonl.xz"): path for path in paths}


_PATHS = _found(CORPUS, "**/*.jsonl.xz") | _found(RECORDINGS, "**/*.jsonl.xz")
_OTHER_KINDS = (
    "h100/small_kernels",
    "h200/cold_start",
    "h200/timing_without_sync",
    "h200/utilization",
)
NAMES = sorted([*_found(CORPUS, "*.jsonl.xz"), *_OTHER_KINDS])
"""Of each kind of run some."""
ALL = sorted(_PATHS)
"""With the lessons that ship, and runs whose goodput is known."""


def recorded_path(name):
    """The packed file of a recorded run."""
    return _PATHS[name]


def run_file(name, folder):
    """A recorded run file, unpacked into a folder."""
    path = Path(folder) / f"{Path(name).name}.jsonl"
    path.write_bytes(lzma.decompress(recorded_path(name).read_bytes()))
    return path


def report_of(name, folder):
    """The report that is made of a recorded run now."""
    return load(run_file(name, folder))


def report_json(name, folder):
    """The same as its JSON, without the path of the file, which lies elsewhere each time."""
    document = json.loads(msgspec.json.encode(builtins_of(report_of(name, folder))))
    del document["run_file"]
    return document


@cache
def stored_reports():
    """By name, as dictionaries: what an earlier version made of the run files."""
    return json.loads(lzma.decompress(_REPORTS.read_bytes()))


def store_reports():
    """From now on reports are to be as they are now."""
    with TemporaryDirectory() as folder:
        reports = {name: report_json(name, folder) for name in ALL}
    text = json.dumps(reports, sort_keys=True, separators=(",", ":"))
    _REPORTS.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


SMALL_REQUEST = RunRequest(
    job=Measure(
        subject=ScenarioFile(
            scenario="µ",
            path="s.py",
            source_sha256="0",
            variants=(VariantInfo(name="a"), VariantInfo(name="b", against="a")),
        )
    )
)
SMALL_RUN = (
    e.RunStarted(t=1.0, request=SMALL_REQUEST, at="", host="h"),
    e.Log(t=1.5, lines=["é\ud7ff"]),
    e.FindingMade(t=1.75, finding=finding("plain_functions")),
    e.Stopped(t=2.0, reason="width"),
    e.RunEnded(t=2.5, outcome="done"),
)
"""The events of a run of which only the frame is there."""


def write_run(path, events=SMALL_RUN, gpulab="0.1.0"):
    """A run file of today with these events."""
    file = RunFile(path, gpulab)
    for event in events:
        file.append([event])
    file.close()
    return path


@cache
def transformer_operations():
    """Those of the trace of a transformer's training step on an H200."""
    # torch, which nothing else here needs
    from gpulab.features.goodput.work import WorkOfCalls

    data = lzma.decompress((CORPUS / "traces" / "transformer-step-h200.json.xz").read_bytes())
    trace = read_any(json.loads(data)["traceEvents"])
    return trace, operations(trace, work_of=WorkOfCalls())


def run_of_a_transformer(folder):
    """A run file of an H200, with its roofs, whose variants ran the operations of that step."""
    trace, rows = transformer_operations()
    whole_s = trace.window_s
    events = []
    for event in read_run_file(run_file("h200/precision", folder)).events:
        if isinstance(event, Profiled):
            parts = msgspec.structs.replace(
                event.partition, window_s=whole_s, seconds={"useful": whole_s}
            )
            changes = {"steps": 2, "plain_s": whole_s / 2, "profiled_s": whole_s / 2}
            event = msgspec.structs.replace(
                event, partition=parts, repeated=parts, operations=rows, **changes
            )
        events.append(event)
    return write_run(Path(folder) / "transformer.jsonl", events)


if __name__ == "__main__":
    store_reports()
