"""The session: one ordered stream, nothing lost, whatever the parent and the worker do."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from statistics import median

import pytest

from gpulab.model import events as e
from gpulab.model.request import RunRequest, VariantInfo
from gpulab.model.state import fold_all
from gpulab.run.output import Output
from gpulab.run.record import RunFile, read
from gpulab.run.session import Session

RATE, STEPS, STOP_S = 10_000, 1000, 5.0
FLOOD = (sys.executable, str(Path(__file__).parent / "flood_worker.py"))
INFOS = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))


def request(**options):
    return RunRequest(**{"scenario": "s", "path": "s.py", "source_sha256": "0", "variants": INFOS, **options})


def session(tmp_path, code, **options):
    """A session whose worker is a few lines of Python; `emit(event)` writes an event."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, sys, time\nfrom gpulab.model.events import *\nfrom gpulab.model.wire import encode\n"
        "FD = int(sys.argv[1])\n"
        "def emit(event): os.write(FD, encode(event))\n" + textwrap.dedent(code)
    )
    made = Session(request(**options), RunFile(tmp_path / "run.jsonl", "0"), (sys.executable, str(worker)))
    made.start()
    return made


def names(events):
    return [type(event).__name__ for event in events]


def test_the_stream_the_file_and_the_order_are_one(tmp_path):
    made = session(tmp_path, "print('hello')\nemit(Noticed(text='one'))\nemit(WorkerDone(sent=1))")
    assert made.wait(20)
    events = made.drain()
    assert names(events)[0] == "RunStarted"
    assert names(events)[-1] == "RunEnded"
    assert events[-1].outcome == "done"
    assert read(made.path).events == events
    assert made.drain() == []
    assert ["hello"] in [event.lines for event in events if isinstance(event, e.Log)]


def test_a_worker_that_ends_without_its_end_has_crashed(tmp_path):
    made = session(tmp_path, "emit(Noticed(text='one'))\nos._exit(9)")
    assert made.wait(20)
    events = made.drain()
    assert names(events)[-2:] == ["VariantFailed", "RunEnded"]
    assert events[-1].outcome == "failed"


def test_a_worker_that_cannot_be_started_is_an_event(tmp_path):
    made = Session(request(), RunFile(tmp_path / "run.jsonl", "0"), ("/nothing/there",))
    made.start()
    assert made.wait(20)
    assert "could not be run" in made.drain()[-2].message


def test_cancelling_ends_a_worker_that_never_would(tmp_path):
    made = session(tmp_path, "emit(Noticed(text='up'))\ntime.sleep(600)")
    while not any(isinstance(event, e.Noticed) for event in made.drain()):
        time.sleep(0.02)
    made.cancel()
    made.cancel()
    assert made.wait(20)
    assert made.drain()[-1].outcome == "cancelled"


def test_a_torn_line_and_another_version_s_event_are_skipped(tmp_path):
    code = """
        os.write(FD, b'{"type":"Noti')
        os.write(FD, b'ced","t":1.0,"text":"torn"}\\ngarbage\\n{"type":"Later","t":1.0}\\n')
        emit(WorkerDone(sent=2))
    """
    made = session(tmp_path, code)
    assert made.wait(20)
    texts = [event.text for event in made.drain() if isinstance(event, e.Noticed)]
    assert texts[0] == "torn"
    assert "1 lines of the event pipe" in texts[1]


def test_a_lost_event_fails_the_run(tmp_path):
    made = session(tmp_path, "emit(Noticed(text='one'))\nos.write(FD, b'garbage\\n')\nemit(WorkerDone(sent=2))")
    assert made.wait(20)
    events = made.drain()
    assert "1 events of the measurement were lost" in events[-2].message
    assert events[-1].outcome == "failed"


def test_a_full_disk_ends_the_file_and_not_the_run(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        made = session(tmp_path, "[emit(Noticed(text='x' * 1000)) for _ in range(50)]\nemit(WorkerDone(sent=50))")
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limit[1]))
        assert made.wait(20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    events = made.drain()
    assert events[-1].outcome == "done"
    assert any("the run file ends here" in event.text for event in events if isinstance(event, e.Noticed))
    assert read(made.path).events


def test_output_keeps_the_first_and_last_lines_and_counts_the_rest():
    output = Output()
    found = [log for start in range(0, 5000, 7) for log in output.take(lines(start, min(start + 7, 5000)))]
    found += output.end()
    kept = [line for log in found for line in log.lines]
    assert kept == [f"line {number}" for number in [*range(1000), *range(4000, 5000)]]
    assert sum(log.skipped for log in found) == 3000


def lines(start, end):
    return b"".join(b"line %d\n" % number for number in range(start, end))


def test_output_without_a_newline_is_bounded():
    output = Output()
    found = [log for _ in range(100) for log in output.take(b"x" * 10_000)] + output.end()
    assert all(len(line) <= 4096 for log in found for line in log.lines)


@pytest.mark.slow
def test_ten_thousand_samples_a_second_with_the_parent_stopped_are_all_kept(tmp_path):
    code = f"""
        import sys, time
        from pathlib import Path
        from gpulab.model.request import RunRequest, VariantInfo
        from gpulab.run.record import RunFile
        from gpulab.run.session import Session
        infos = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
        request = RunRequest(scenario="s", path="s.py", source_sha256="0", variants=infos, time_s=20.0)
        made = Session(request, RunFile(Path(sys.argv[1]), "0"), {FLOOD!r})
        made.start()
        while not made.wait(0.25):
            made.drain()
    """
    file = tmp_path / "run.jsonl"
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(file)])
    while not file.exists() or b"Samples" not in file.read_bytes():
        time.sleep(0.05)
    time.sleep(6)
    stopped = time.monotonic()
    os.kill(parent.pid, signal.SIGSTOP)
    time.sleep(STOP_S)
    os.kill(parent.pid, signal.SIGCONT)
    assert parent.wait(60) == 0
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    events = read(file).events
    batches = [event for event in events if isinstance(event, e.Samples)]
    rows = [row for one in batches for row in zip(one.epoch, one.round, one.variant, strict=True)]
    sent, waiting = (int(word) for word in log_of(events).split() if word.isdigit())
    assert len(rows) == len(set(rows)) == sent
    assert sent >= 195_000
    assert rows == sorted(rows)
    assert fold_all(events).rounds == sent // 2
    # What waits in the worker is what came while the pipe was full, not all there was.
    assert waiting < 16 << 20
    assert peak_mib < 600
    assert len(batches) <= 10 * 22
    times = [(one.t, time_s) for one in batches for time_s in one.times_s]
    before = [time_s for t, time_s in times if t < stopped]
    during = [time_s for t, time_s in times if stopped <= t < stopped + STOP_S]
    ratio = median(during) / median(before)
    print(f"samples {sent}, waiting at most {waiting} bytes, peak {peak_mib:.0f} MiB, ratio {ratio:.4f}")
    # It went on measuring, and no block waited for the reader. Other tests share the machine: the medians may differ.
    assert len(during) > RATE * STOP_S / 2
    assert max(during) * STEPS < STOP_S / 2
    assert 0.5 < ratio < 2


def log_of(events):
    return " ".join(line for event in events if isinstance(event, e.Log) for line in event.lines if "sent" in line)
