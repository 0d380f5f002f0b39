"""From a trace to a scenario that runs: of a training step that torch.profiler recorded just now;
and its mistakes.
"""

import gzip
import json
import shlex
import subprocess
import sys
from statistics import median

import pytest
from scripted import CommandLine

from gpulab.catalog.catalog import read_file
from gpulab.features.from_trace.calls import recorded_calls
from gpulab.traces.stream import trace_events
from gpulab.traces.trace import read_any

RECORD = """
import sys, torch
from torch import nn
model = nn.Sequential(nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU())
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
ids, target = torch.randint(0, 50, (4, 8)), torch.randint(0, 32, (32,))

def step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids).view(32, 32), target).backward()
    optimizer.step()

step()
with torch.profiler.profile(record_shapes=True) as recording:
    step()
    step()
recording.export_chrome_trace(sys.argv[1])
"""


CALL_ALL = """
import importlib.util, sys, torch
from types import SimpleNamespace
spec = importlib.util.spec_from_file_location("written", sys.argv[1])
written = importlib.util.module_from_spec(spec)
spec.loader.exec_module(written)
for name, variant in list(written.scenario.variants.items())[1:]:
    variant.function(SimpleNamespace(device=torch.device("cpu"))).step()
    print(name)
"""


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    return CommandLine(lab, monkeypatch, capsys, worker=("/the/command/must/not/run",))


def python(lab, program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=lab.folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.slow
def test_every_operation_of_a_recorded_step_can_be_called(lab, gpulab):
    python(lab, RECORD, "step.json")
    wrote = gpulab("--from-trace", "step.json", "--top", "60")
    assert (wrote.code, wrote.stderr) == (0, "")
    assert wrote.stdout.startswith("wrote step_operations.py: ")
    called = set(python(lab, CALL_ALL, "step_operations.py").split())
    assert {"embedding_50x16_4x8", "addmm_32_32x16_16x32", "gelu_4x8x32"} <= called
    assert len([name for name in called if name.startswith("foreach_")]) >= 5


VARIANTS = """

@scenario.variant
def other(lab):
    a = _tensor(lab, torch.float32, (6, 4))
    b = _tensor(lab, torch.float32, (4, 2))
    return Work(lambda: (b.T @ a.T).T, inputs=(a, b))


@scenario.variant
def twice(lab):
    a = _tensor(lab, torch.float32, (6, 4))
    b = _tensor(lab, torch.float32, (4, 2))
    return Work(lambda: 2 * (a @ b), inputs=(a, b))
"""


def test_variants_are_compared_with_the_chosen_operation_and_a_wrong_one_is_called_wrong(lab):
    lighter = {**MM, "Input Dims": [[6, 4], [4, 2]]}
    entries = [
        *json.loads(trace_of(**MM))["traceEvents"],
        *json.loads(trace_of(**lighter))["traceEvents"],
    ]
    entries[1].update(ts=10.0, dur=3.0)
    (lab.folder / "t.json").write_text(json.dumps({"traceEvents": entries}))
    assert lab.call("--from-trace", "t.json").code == 0
    with (lab.folder / "t_operations.py").open("a") as file:
        file.write(VARIANTS)
    done = lab.run("t_operations.py", "--set", "operation=mm_6x4_4x2", "--smoke")
    assert done.code == 4, done.stderr
    statuses = {variant["name"]: variant["status"] for variant in done.run["variants"]}
    assert statuses == {
        "recorded": "ok",
        "mm_8x4_4x2": "ok",
        "mm_6x4_4x2": "ok",
        "other": "ok",
        "twice": "wrong",
    }
    assert done.comparison("other")["against"] == "recorded"
    assert done.verdict("twice") == "wrong"


TRAIN = """
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
model = nn.Sequential(encoder, nn.Linear(256, 1000))
optimizer = torch.optim.AdamW(model.parameters())
tokens, target = torch.randn(8, 128, 256), torch.randint(0, 1000, (1024,))

def step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens).view(1024, 1000), target).backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_operations_take_about_as_long_alone_as_in_a_transformers_training_step(lab):
    """Each ratio is generous, and a machine's noise is in both: the typical one is close."""
    (lab.folder / "train.py").write_text(TRAIN)
    assert lab.run("train.py:step", "--threads", "1", "--trace", "t.json", time_s="2").code == 0
    assert lab.call("--from-trace", "t.json").code == 0
    done = lab.run("t_operations.py", "--threads", "1", time_s="20")
    assert done.code == 0, done.stderr
    with (lab.folder / "t.json").open() as file:
        recorded = recorded_calls(read_any(trace_events(file))).calls[:10]
    alone = done.run["variants"][1:]
    ratios = [
        variant["time_s"]["value"] / call.median_s
        for variant, call in zip(alone, recorded, strict=True)
    ]
    assert 0.75 < median(ratios) < 1.33
    assert all(0.4 < ratio < 2.5 for ratio in ratios), ratios


MM = {
    "Input Dims": [[8, 4], [4, 2]],
    "Input Strides": [[4, 1], [2, 1]],
    "Input type": ["float", "float"],
}


def entry(name="aten::mm", **arguments):
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": 1.0,
        "dur": 5.0,
        "args": arguments,
    }


def trace_of(name="aten::mm", **arguments):
    return json.dumps({"traceEvents": [entry(name, **arguments)]}).encode()


WHOLE = trace_of(**MM)


def of_other(kind, **keys):
    """A whole Chrome trace with one event of this category."""
    event = {**entry("f"), "cat": kind}
    return json.dumps({"traceEvents": [event], **keys}).encode()


def scalar_of(text, kind="Scalar", dims=()):
    """The arguments of an operation of a tensor and a number."""
    return {
        "Input Dims": [[8], list(dims)],
        "Input Strides": [[1], []],
        "Input type": ["float", kind],
        "Concrete Inputs": ["", text],
    }


def test_a_packed_trace_is_read_and_a_file_never_written_over(lab, gpulab):
    (lab.folder / "my-run.pt.trace.json.gz").write_bytes(gzip.compress(trace_of(**MM)))
    assert gpulab("--from-trace", "my-run.pt.trace.json.gz").code == 0
    assert "def mm_8x4_4x2(lab):" in (lab.folder / "my_run_operations.py").read_text()
    again = gpulab("--from-trace", "my-run.pt.trace.json.gz")
    assert again.code == 2
    assert "--from-trace my_run_operations.py: the file exists" in again.stderr
    assert gpulab("--from-trace", "my-run.pt.trace.json.gz", "mine.py").code == 0
    assert (lab.folder / "mine.py").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x80\x81", "no text: torch.profiler writes JSON"),
        (b"[" * 100_000, "no list of traceEvents: it begins with ["),
        (b'{"traceEvents": [' + b"[" * 100_000, "nested too deeply"),
        (b"[]", "no list of traceEvents"),
        (b'{"traceEvents": []}', "no operations in it: its list of traceEvents is empty"),
        # cut off: within a name, between events, within a word, after the list
        (trace_of(**MM)[:60], "cut off at byte 60, after 0 whole events"),
        (
            trace_of(**MM)[:-2],
            f"cut off at byte {len(WHOLE) - 2}, after 1 whole event: it was not written",
        ),
        (trace_of(**MM)[:-1], f"cut off at byte {len(WHOLE) - 1}, after 1 whole event"),
        (b'{"traceEvents": [{"ph": tru', "cut off at byte 27, after 0 whole events"),
        # broken in the middle
        (trace_of(**MM).replace(b"mm", b"m\\m"), "no JSON at byte 62: Invalid \\escape"),
        (trace_of(**MM) + b"\nx", f"x after the end of the trace, at byte {len(WHOLE) + 1}"),
        # other tools'
        (of_other("v8,devtools"), "none of 1 event is of torch.profiler; their categories: v8,d"),
        (b'{"shared": {}, "profiles": []}', "no list of traceEvents, which torch.profiler writes"),
        (b'{"profiles": ["' + b"x" * (10 << 20) + b'"]}', "characters of one event"),
        # of a GPU alone, with the shapes that somebody asked for
        (of_other("kernel"), "kernels, and no operations of the host: record with activities=["),
        (trace_of(), "record with profile(record_shapes=True)"),
        (trace_of("AddmmBackward0", **MM), "none of its heaviest operations can be called alone"),
        (gzip.compress(trace_of(**MM))[:-9], "--from-trace t.json:"),
        (b"\x1f\x8b\x08broken", "--from-trace t.json:"),
    ],
)
def test_what_is_no_such_trace_says_so(lab, gpulab, content, message):
    (lab.folder / "t.json").write_bytes(content)
    process = gpulab("--from-trace", "t.json")
    assert (process.code, process.stdout) == (2, "")
    assert message in " ".join(process.stderr.split())
    assert not (lab.folder / "t_operations.py").exists()


def test_what_takes_no_time_is_not_written(lab, gpulab):
    entries = [{**entry(**MM), "dur": 1e6}, {**entry("aten::bmm", **MM), "ts": 2e6}]
    (lab.folder / "t.json").write_text(json.dumps({"traceEvents": entries}))
    assert gpulab("--from-trace", "t.json").code == 0
    text = (lab.folder / "t_operations.py").read_text()
    assert "def mm_8x4_4x2(lab):" in text
    assert "bmm" not in text


ODD_FIELDS = ({"cat": ["cpu_op"]}, {"cat": {}}, {"ts": 10**400}, {"dur": 10**400}, {"pid": []})


@pytest.mark.parametrize("odd", ODD_FIELDS, ids=["list", "dict", "ts", "dur", "pid"])
def test_an_event_with_odd_fields_is_skipped(lab, gpulab, odd):
    entries = [{**entry("aten::bmm", **MM), **odd}, entry(**MM)]
    (lab.folder / "t.json").write_text(json.dumps({"traceEvents": entries}))
    assert gpulab("--from-trace", "t.json").code == 0
    assert "def mm_8x4_4x2(lab):" in (lab.folder / "t_operations.py").read_text()


@pytest.mark.parametrize(
    "trace",
    [trace_of("aten::_3d", **MM), trace_of("aten::mul", **scalar_of("2", dims=[-1]))],
    ids=["a name that begins with a number", "a negative size"],
)
def test_what_is_written_can_be_run(lab, gpulab, trace):
    (lab.folder / "t.json").write_bytes(trace)
    assert gpulab("--from-trace", "t.json").code == 0
    assert read_file(lab.folder / "t_operations.py").error is None


def test_on_a_full_disk_no_empty_file_is_left(lab):
    command = shlex.join([sys.executable, "-m", "gpulab", "--new", "x.py"])
    full = f"trap '' XFSZ; ulimit -f 0; {command} 2>&1 | cat"
    done = subprocess.run(["bash", "-c", full], cwd=lab.folder, capture_output=True, text=True)
    assert "x.py: File too large" in done.stdout
    assert not (lab.folder / "x.py").exists()


def test_without_torch_it_says_what_to_install(lab, gpulab, monkeypatch):
    (lab.folder / "t.json").write_bytes(trace_of(**MM))
    monkeypatch.setitem(sys.modules, "torch", None)
    done = gpulab("--from-trace", "t.json")
    assert done.code == 2
    assert "pip install torch" in done.stderr


def test_mistakes_in_the_command_say_what_to_write(lab, gpulab):
    (lab.folder / "t.json").write_bytes(trace_of(**MM))
    assert "No such file" in gpulab("--from-trace", "nowhere.json").stderr
    assert "not a regular file" in gpulab("--from-trace", ".").stderr
    assert "a scenario is a Python file" in gpulab("--from-trace", "t.json", "x.txt").stderr
    assert "takes TRACE [FILE]" in gpulab("--from-trace", "t.json", "x.py", "y.py").stderr
    assert (
        "--top; it requires --run WHAT or --run -- PROGRAM or --replay or --watch or --from-trace"
        in gpulab("--new", "x.py", "--top", "3").stderr
    )
