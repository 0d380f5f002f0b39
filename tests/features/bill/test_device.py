"""The bill of a device in a step of a followed program: of a recording by hand, and of a GPU's."""

import json
import lzma
from pathlib import Path

import pytest
from traces import event, op, window

from gpulab.core.events import RunStarted
from gpulab.core.jobs import Follow, Program, RunRequest, VariantInfo
from gpulab.features.bill.device import OTHERS, device
from gpulab.features.bill.events import ProcessBooked
from gpulab.features.program.events import StepMark, StepsFollowed, WindowKind
from gpulab.features.program.files import FollowedProcess, RecordedSteps
from gpulab.features.program.recordings import profiled
from gpulab.report.build import build_report, fold_all
from gpulab.show.terminal import plain_text

TRACES = Path(__file__).parents[2] / "corpus" / "traces"


def of_a_step(at):
    """500 us: 100 of a kernel of a line, 50 of one of another, 50 copied; and 300 idle, of them 120
    in two waits of the host, of which one is behind a kernel.
    """
    return [
        event("cpu_op", "gpulab:at train.py:7|Net", at, at + 100),
        op("mm", at + 20, at + 90),
        event("cuda_runtime", "cudaLaunchKernel", at + 40, at + 60, correlation=at + 1),
        event("kernel", "gemm", at + 100, at + 200, (0, 7), correlation=at + 1),
        event("cpu_op", "gpulab:at train.py:8|", at + 110, at + 200),
        op("item", at + 110, at + 200),
        event("cuda_runtime", "cudaStreamSynchronize", at + 115, at + 190),
        event("cpu_op", "gpulab:at train.py:9|Net", at + 210, at + 300),
        op("mm", at + 210, at + 290),
        event("cuda_runtime", "cudaLaunchKernel", at + 230, at + 240, correlation=at + 2),
        event("kernel", "gemm", at + 240, at + 290, (0, 7), correlation=at + 2),
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 290, at + 340, (0, 7)),
        event("cpu_op", "gpulab:at train.py:10|", at + 340, at + 460),
        op("item", at + 340, at + 460),
        event("cuda_runtime", "cudaStreamSynchronize", at + 340, at + 460),
    ]


def reported(folder, document, steps, step_s):
    """The report of a program that was followed: recorded for some steps, and plain for others."""
    process = FollowedProcess(folder / "1.jsonl")
    plain = StepsFollowed(
        variant="p.py",
        pid=1,
        kind=WindowKind.PLAIN,
        mark=StepMark.CALL,
        steps=4,
        seconds=4 * step_s,
    )
    process.windows = [plain]
    for recording, count in (("plain", steps), ("callers", 1)):
        file = folder / f"{recording}.json"
        file.write_text(json.dumps(document))
        recorded = RecordedSteps(
            recording=recording, steps=count, seconds=1.0, cpu_s=0.5, delay_s=None, file=str(file)
        )
        process.recordings[recording] = recorded
    program = Program(
        scenario="p",
        path="p.py",
        source_sha256="0",
        variants=(VariantInfo(name="p.py"),),
        argv=("p.py",),
    )
    started = RunStarted(request=RunRequest(job=Follow(subject=program)), at="", host="")
    times = {"started": 0.0, "begun": 0.0, "until": 1.0, "own_s": 0.0, "collected_s": 0.0}
    counts = {"samples": 1, "collections": 0, "preempted_s": 0.0, "other_s": 0.0}
    booked = ProcessBooked(pid=1, parent=0, role="program", ended=True, rows=[], **times, **counts)
    return build_report(fold_all([started, plain, booked, *profiled("p.py", process, None)]))


def test_each_part_of_the_device_has_its_operation_and_line_and_is_booked_once(tmp_path):
    document = {"traceEvents": [window(), *of_a_step(0), *of_a_step(500)]}
    report = reported(tmp_path, document, steps=2, step_s=350e-6)
    bill = report.bill.device
    rows = {(row.cause, row.of, row.function, *row.lines): 1e6 * row.seconds for row in bill.rows}
    # 200 us are busy, as recorded; 300 us of idle time in 150 that are left of a step
    assert rows == pytest.approx(
        {
            ("device busy", "gemm", "aten::mm", 7): 100,
            ("device busy", "gemm", "aten::mm", 9): 50,
            ("device copies", "Memcpy HtoD (Pageable -> Device)", ""): 50,
            ("device idle: the host waits for the device", "cudaStreamSynchronize", "aten::item", 10): 60,
            ("device idle: starting operations", "", "", 7): 25,
            ("device idle: starting operations", "", "", 9): 10,
            ("device idle: launching", "cudaLaunchKernel", "aten::mm", 7): 10,
            ("device idle: launching", "cudaLaunchKernel", "aten::mm", 9): 5,
            ("device idle: in Python, or not recorded", "", ""): 40,
        }
    )  # fmt: skip
    assert sum(row.seconds for row in bill.rows) == pytest.approx(bill.wall_s) == 350e-6
    assert "train.py:7 aten::mm gemm" in plain_text(device(report), 120)


@pytest.mark.parametrize("factor", [0.5, 0.9, 3.0])
def test_rows_of_a_gpus_recording_sum_to_a_step_however_long_it_is(tmp_path, factor):
    document = json.loads(lzma.decompress((TRACES / "transformer-step-h200.json.xz").read_bytes()))
    timed = [each for each in document["traceEvents"] if "dur" in each]
    start = min(each["ts"] for each in timed)
    end = max(each["ts"] + each["dur"] for each in timed)
    first = min((each for each in timed if each["cat"] == "cpu_op"), key=lambda each: each["ts"])
    whole = {**first, "name": "gpulab:window", "ts": start, "dur": end - start}
    document["traceEvents"].append(whole)
    step_s = factor * (end - start) * 1e-6 / 2
    bill = reported(tmp_path, document, steps=2, step_s=step_s).bill.device
    assert sum(row.seconds for row in bill.rows) == pytest.approx(step_s) == bill.wall_s
    busy = [row for row in bill.rows if row.cause == "device busy"]
    assert all(row.function for row in busy if row.of != OTHERS)
    assert any(row.cause == "unbooked" for row in bill.rows) == (factor > 1)
