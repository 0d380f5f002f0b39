"""`--watch` without a terminal follows a run of another process, and prints what it gave."""

import subprocess
import threading

from conftest import GPULAB
from recorded import recorded_path

from gpulab.core.run_file import RunFile, read_run_file


def test_a_run_is_followed_to_its_end_and_printed_as_a_replay_prints_it(lab):
    path = lab.folder / "run.jsonl"
    events = read_run_file(recorded_path("h200/batched_matmul")).events
    run = RunFile(path, "0.1.0")
    run.append(events[:-1])
    end = threading.Timer(1.5, lambda: run.append(events[-1:]))
    end.start()
    watched = subprocess.run(
        [*GPULAB, "--watch", lab.folder],
        env=lab.env,
        cwd=lab.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    end.join()
    run.close()
    assert "watching batched_matmul: " in watched.stderr
    assert "watched; it ended at" in watched.stderr
    assert watched.stdout == lab.call("--replay", path).stdout
