"""`gpulab --why TRACE`: each moment of a recording is booked once."""

import gzip
import json
import subprocess
import sys

import pytest


def event(kind, name, start, end, tid=1, **arguments):
    event = {"ph": "X", "cat": kind, "name": name, "ts": start, "dur": end - start}
    return {**event, "pid": 1, "tid": tid, "args": arguments}


def of_a_step(at):
    """100 ms: 20 of kernels on two streams at once, 10 of a collective, 5 copied, 65 idle."""
    return [
        event("user_annotation", f"ProfilerStep#{at // 100}", at, at + 100),
        event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", at, at + 25),
        event("cpu_op", "aten::mm", at + 30, at + 50),
        event("cuda_runtime", "cudaLaunchKernel", at + 40, at + 45, correlation=at),
        event("kernel", "gemm", at + 45, at + 60, tid=7, correlation=at),
        event("kernel", "relu", at + 55, at + 65, tid=8),
        event("kernel", "ncclDevKernel_AllReduce", at + 65, at + 75, tid=9),
        event("gpu_memcpy", "Memcpy DtoH", at + 75, at + 80, tid=7),
        event("cuda_runtime", "cudaStreamSynchronize", at + 80, at + 90),
    ]


TRUTH = {
    ("device idle: waiting for data", ""): 0.25,
    ("device idle: starting operations", ""): 0.10,
    ("device idle: launching", "cudaLaunchKernel"): 0.05,
    ("device idle: the host waits for the device", "cudaStreamSynchronize"): 0.10,
    ("device idle: in Python, or not recorded", ""): 0.15,
    ("device busy", "gemm"): 0.10,
    ("device busy", "relu"): 0.10,
    ("device in collectives", "ncclDevKernel_AllReduce"): 0.10,
    ("device copies", "Memcpy DtoH"): 0.05,
}


def why(lab, *names, code=0):
    target = lab.folder / "why.json"
    finished = lab.call("--why", *names, "--json", target)
    assert finished.code == code
    return finished, json.loads(target.read_text())["bills"] if code == 0 else None


def written(lab, name, document):
    path = lab.folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_device_and_idle_time_are_booked_once_and_by_what_the_host_did(lab):
    events = [each for at in range(0, 300, 100) for each in of_a_step(at)]
    finished, (bill,) = why(lab, written(lab, "t.json", {"traceEvents": events}))
    shares = {(row["cause"], row["of"]): row["seconds"] / bill["wall_s"] for row in bill["rows"]}
    assert shares == pytest.approx(TRUTH, abs=1e-9)
    assert bill["busy_s"] / bill["wall_s"] == pytest.approx(0.35)
    assert (bill["steps"], bill["step_s"]) == (3, pytest.approx(100e-6))
    assert "the device was busy 35.0%" in finished.stdout


def test_a_recording_of_a_host_alone_has_its_operations(lab):
    events = [event("cpu_op", "aten::mm", 0, 40), event("cpu_op", "aten::empty", 10, 20)]
    events.append(event("cpu_op", "aten::add", 90, 100))
    _, (bill,) = why(lab, written(lab, "t.json", {"traceEvents": events}))
    shares = {row["of"] or row["cause"]: row["seconds"] for row in bill["rows"]}
    truth = {"outside of operations": 50, "aten::mm": 30, "aten::empty": 10, "aten::add": 10}
    assert shares == pytest.approx({name: 1e-6 * us for name, us in truth.items()})


def test_what_is_there_of_a_file_that_was_cut_off_is_read_and_the_rest_said(lab):
    text = json.dumps({"traceEvents": of_a_step(0) * 20})
    finished, (bill,) = why(lab, written(lab, "t.json", text[: len(text) // 2]))
    assert bill["rows"]
    assert "cut off at byte" in bill["note"]
    assert "read in part" in finished.stdout


def test_a_folder_of_ranks_has_a_row_for_each(lab):
    folder = lab.folder / "ranks"
    folder.mkdir()
    for rank in range(3):
        text = json.dumps({"traceEvents": of_a_step(0)}).encode()
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(text))
    finished, bills = why(lab, folder)
    assert [bill["file"] for bill in bills] == [f"rank{rank}.json.gz" for rank in range(3)]
    assert "rank2.json.gz" in finished.stdout


def test_a_foreign_file_is_named_and_no_traceback_comes(lab):
    foreign = written(lab, "v.json", {"viztracer_metadata": {}, "traceEvents": [{"ph": "M"}]})
    finished, _ = why(lab, foreign, code=2)
    assert "none of 1 event is of torch.profiler" in finished.stderr
    finished, _ = why(lab, written(lab, "n.json", "\x00\x01"), code=2)
    assert "Traceback" not in finished.stderr


def test_the_rank_whose_collectives_are_shortest_came_last(lab):
    """Rank 1 comes 8 us late to each of five all-reduces of 2 us; their clocks differ."""
    folder = lab.folder / "ranks"
    folder.mkdir()
    for rank, lasts in ((0, 10), (1, 2)):
        ends = [1000 * rank + 100 * step for step in range(1, 6)]
        kernels = [
            event("kernel", "ncclDevKernel_AllReduce_Sum_f32", end - lasts, end, tid=7)
            for end in ends
        ]
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": kernels}))
    target = lab.folder / "why.json"
    finished = lab.call("--why", folder, "--json", target)
    first, second = json.loads(target.read_text())["ranks"]
    assert (first["last"], second["last"], second["collectives"]) == (0, 5, 5)
    assert (first["waiting_s"], second["waiting_s"]) == pytest.approx((40e-6, 0))
    assert first["transferring_s"] == second["transferring_s"] == pytest.approx(10e-6)
    assert "5 of 5" in finished.stdout


def test_time_outside_of_operations_is_by_the_function_or_the_range_that_it_is_in(lab):
    events = [
        event("python_function", "train.py(3): step", 0, 100),
        event("python_function", "torch/nn/modules/module.py(9): _call_impl", 60, 100),
        event("python_function", "<built-in method sleep>", 10, 20),
        event("user_annotation", "prepare", 20, 50),
        event("cpu_op", "aten::mm", 40, 60),
    ]
    _, (bill,) = why(lab, written(lab, "s.json", {"traceEvents": events}))
    outside = {row["of"]: row["seconds"] for row in bill["rows"] if row["cause"] != "torch"}
    assert outside == pytest.approx({"train.py:3 step": 6e-5, "prepare": 2e-5})


def test_a_schedule_that_writes_a_file_a_cycle_is_a_folder_of_one_process(lab):
    """Two cycles of wait 1, warm-up 1 and active 2, by torch's own handler."""
    folder = lab.folder / "cycles"
    program = [
        "import torch",
        "from torch.profiler import profile, schedule, tensorboard_trace_handler",
        "cycle = schedule(wait=1, warmup=1, active=2, repeat=2)",
        f"handler = tensorboard_trace_handler({str(folder)!r}, use_gzip=True)",
        "with profile(schedule=cycle, on_trace_ready=handler) as profiler:",
        "    for _ in range(10):",
        "        torch.ones(8).sum()",
        "        profiler.step()",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(program)], check=True, capture_output=True)
    _, bills = why(lab, folder)
    assert [bill["steps"] for bill in bills] == [2, 2]


def test_cycles_of_a_process_are_not_ranks_that_wait_for_each_other(lab):
    folder = lab.folder / "cycles"
    folder.mkdir()
    for name, lasts in {"a_1": 10, "b_2": 2}.items():
        for cycle in range(2):
            end = 100 * cycle + 50
            kernel = event("kernel", "ncclDevKernel_AllReduce_Sum_f32", end - lasts, end)
            path = folder / f"{name}.{1_795_888_580_367_181_300 + cycle}.pt.trace.json"
            path.write_text(json.dumps({"traceEvents": [kernel]}))
    target = lab.folder / "why.json"
    lab.call("--why", folder, "--json", target)
    ranks = json.loads(target.read_text())["ranks"]
    found = {rank["file"]: (rank["last"], rank["collectives"]) for rank in ranks}
    assert found == {"a_1.pt.trace.json": (0, 2), "b_2.pt.trace.json": (2, 2)}


def test_what_differs_between_two_recordings_is_of_a_step(lab):
    """Of three steps and two: the second launches twice as long in each."""
    first = [each for at in range(0, 300, 100) for each in of_a_step(at)]
    second = [each for at in range(0, 200, 100) for each in of_a_step(at)]
    for each in second:
        if each["name"] == "cudaLaunchKernel":
            each["ts"], each["dur"] = each["ts"] - 5, 10
    paths = [written(lab, "a.json", {"traceEvents": first})]
    paths.append(written(lab, "b.json", {"traceEvents": second}))
    finished, _ = why(lab, *paths)
    differences = json.loads((lab.folder / "why.json").read_text())["changes"]
    found = {(each["cause"], each["of"]): each for each in differences}
    launching = found["device idle: launching", "cudaLaunchKernel"]
    assert (launching["first_s"], launching["second_s"]) == pytest.approx((5e-6, 10e-6))
    assert found["device busy", None]["first_s"] == found["device busy", None]["second_s"]
    assert "what differs, of a step" in finished.stdout
