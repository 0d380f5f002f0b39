"""Ten thousand samples a second, and a parent that stops for seconds: nothing is lost, and nothing
waits for it.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from statistics import median

import pytest
from conftest import wait_for

from gpulab.core import events as e
from gpulab.core.run_file import read_run_file
from gpulab.report.build import fold_all

TIME_S, BEFORE_S, STOP_S = 4.0, 1.0, 2.0
HERE = Path(__file__).parent
PARENT = f"""
    import sys
    sys.path.insert(0, {str(HERE)!r})
    from pathlib import Path
    from gpulab.core.run_file import RunFile
    from gpulab.session.session import Session
    from session_workers import request

    def peak_kib():
        # Not ru_maxrss: it begins with the size of the process that forked this one.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    worker = (sys.executable, {str(HERE / "flood_worker.py")!r})
    session = Session(request(time_s={TIME_S}), RunFile(Path(sys.argv[1]), "0"), worker)
    at_start_kib = peak_kib()
    session.start()
    while not session.wait(0.25):
        session.take()
    print(peak_kib() - at_start_kib)
"""


@pytest.mark.slow
def test_samples_taken_while_the_parent_is_stopped_are_all_recorded(tmp_path):
    file = tmp_path / "run.jsonl"
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(file)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: file.exists() and b"Samples" in file.read_bytes())
    time.sleep(BEFORE_S)
    os.kill(parent.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    time.sleep(STOP_S)
    continued = time.monotonic()
    os.kill(parent.pid, signal.SIGCONT)
    growth_kib, _ = parent.communicate(timeout=60)
    assert parent.returncode == 0
    events = read_run_file(file).events
    batches = [event for event in events if isinstance(event, e.Samples)]
    rows = [
        row
        for batch in batches
        for row in zip(batch.epoch, batch.round, batch.variant, strict=True)
    ]
    sent, waiting = counts(events)
    assert len(rows) == len(set(rows)) == sent
    assert rows == sorted(rows)
    assert fold_all(events).samples.rounds == sent // 2
    # The pipe was full, and what waited in the worker is what came then, not everything.
    assert 0 < waiting < 16 << 20
    assert int(growth_kib) < 64 << 10
    blocks = [
        block
        for batch in batches
        for block in zip(batch.ended, batch.times_s, batch.steps, strict=True)
    ]
    before = [time_s * steps for ended, time_s, steps in blocks if ended < stopped]
    during = [time_s * steps for ended, time_s, steps in blocks if stopped <= ended < continued]
    before_s = stopped - blocks[0][0]
    # It went on measuring as before, and no block waited for the reader. Other work shares the
    # machine.
    assert len(during) / (continued - stopped) > len(before) / before_s / 3
    assert max(during) < STOP_S / 2
    assert 1 / 3 < median(during) / median(before) < 3


def counts(events):
    lines = [
        line
        for event in events
        if isinstance(event, e.Log)
        for line in event.lines
        if "sent" in line
    ]
    return (int(word) for word in " ".join(lines).split() if word.isdigit())
