"""`gpulab --why` of exports of Nsight Systems: SQLite by its schema, and CSV of `nsys stats`."""

import json
import sqlite3

import pytest

PROCESS, OTHER = 5 << 24, 6 << 24
NAMES = {
    1: "gemm(float*)",
    2: "cudaLaunchKernel_v7000",
    3: "cudaStreamSynchronize_v3020",
    4: "poll",
}
NAMES |= {5: "load", 6: "cudaMemcpy_v3020"}
TABLES = {
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "StringIds": "id value",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId streamId correlationId globalPid demangledName",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId streamId correlationId globalPid copyKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId",
    "NVTX_EVENTS": "start end eventType text globalTid textId domainId",
    "OSRT_API": "start end globalTid nameId",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start end deviceId streamId globalPid graphId",
}
KERNEL, COPY, CALLS = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "RUNTIME"))
US = 1_000
STEP = {  # 100 us: 30 of a kernel, 10 of a copy, 60 idle
    KERNEL: [(20, 50, 0, 7, 1, PROCESS, 1)],
    COPY: [(80, 90, 0, 7, 2, PROCESS, 1)],
    CALLS: [
        (0, 10, PROCESS + 5, 1, 2),
        (40, 55, PROCESS + 5, 3, 3),
        (70, 100, PROCESS + 5, 2, 6),
    ],
}
IDLE = "device idle: "
TRUTH = {
    ("device busy", "gemm(float*)"): 30,
    ("device copies", "Memcpy HtoD"): 10,
    (f"{IDLE}launching", "cudaLaunchKernel"): 10,
    (f"{IDLE}the host waits for the device", "cudaStreamSynchronize"): 5,
    (f"{IDLE}the host copies", "cudaMemcpy"): 20,
    (f"{IDLE}outside of the runtime", ""): 25,
}


def database(path, tables, journal="delete"):
    """An export with these tables; their times, the first two columns, in microseconds."""
    made = sqlite3.connect(path)
    made.execute(f"PRAGMA journal_mode = {journal}")
    every = {"ANALYSIS_DETAILS": [], "StringIds": list(NAMES.items()), **tables}
    for table, rows in every.items():
        columns = TABLES[table].split()
        made.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        scale = US if columns[0] == "start" else 1
        for row in rows:
            times = [each if each is None else each * scale for each in row[:2]]
            values = [*times, *row[2:]] if scale == US else row
            made.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)
    made.commit()
    made.close()
    return path


def why(lab, *names, code=0):
    target = lab.folder / "why.json"
    finished = lab.call("--why", *names, "--json", target)
    assert finished.code == code, finished.stderr
    assert "Traceback" not in finished.stderr
    return finished, json.loads(target.read_text()) if code == 0 else None


def microseconds(bill):
    return {(row["cause"], row["of"]): row["seconds"] * 1e6 for row in bill["rows"]}


def test_an_export_has_the_bill_of_a_trace(lab):
    finished, result = why(lab, database(lab.folder / "a.sqlite", STEP))
    (bill,) = result["bills"]
    assert microseconds(bill) == pytest.approx(TRUTH, abs=1e-3)
    assert bill["busy_s"] == pytest.approx(40e-6)
    assert "the device was busy 40.0%" in finished.stdout


def test_ranges_and_calls_of_the_system_say_where_the_host_was(lab):
    tables = {
        **STEP,
        "NVTX_EVENTS": [
            (0, None, 75, "data", None, None, 3),
            (55, 68, 59, None, PROCESS + 5, 5, 3),
            (60, 62, 34, "a mark", PROCESS + 5, None, 0),
            (60, None, 59, "never ended", PROCESS + 5, None, 0),
            (10, 15, 59, "aten::mm, seq = 4", PROCESS + 5, None, 0),
        ],
        "OSRT_API": [(60, 64, PROCESS + 5, 4), (10, 70, PROCESS + 9, 4)],
    }
    _, result = why(lab, database(lab.folder / "a.sqlite", tables))
    found = microseconds(result["bills"][0])
    outside = {of: taken for (cause, of), taken in found.items() if "in Python" in cause}
    truth = {"data: load": 9, "OS runtime: poll": 4, "": 7}
    assert outside == pytest.approx(truth, abs=1e-3)
    assert found[f"{IDLE}starting operations", ""] == pytest.approx(5)


def test_steps_that_gpulab_marked_are_counted(lab):
    ranges = [(at, at + 20, 60, "gpulab:step", PROCESS + 5, None, 0) for at in (0, 20, 50)]
    path = database(lab.folder / "a.sqlite", {**STEP, "NVTX_EVENTS": ranges})
    finished, result = why(lab, path)
    assert result["bills"][0]["steps"] == 3
    assert "3 steps marked, 20.0 µs in median" in finished.stdout
    assert microseconds(result["bills"][0]) == pytest.approx(TRUTH, abs=1e-3)


def test_what_a_kernel_hides_has_no_time_of_its_own(lab):
    tables = {
        **STEP,
        KERNEL: [(20, 50, 0, 7, 1, PROCESS, 1), (45, 60, 0, 9, 1, PROCESS, 8)],
        COPY: [(30, 90, 0, 8, 2, PROCESS, 1)],
        "StringIds": [*NAMES.items(), (8, "ncclAllReduce()")],
    }
    _, result = why(lab, database(lab.folder / "a.sqlite", tables))
    busy = {of: taken for (cause, of), taken in microseconds(result["bills"][0]).items() if of}
    device = {of: busy[of] for of in ("gemm(float*)", "ncclAllReduce()", "Memcpy HtoD")}
    truth = {"gemm(float*)": 30, "ncclAllReduce()": 10, "Memcpy HtoD": 30}
    assert device == pytest.approx(truth, abs=1e-3)


def test_the_thread_with_ranges_is_the_host_whatever_calls_more(lab):
    tables = {
        **STEP,
        CALLS: [*STEP[CALLS], *((at, at + 1, PROCESS + 9, 3, 2) for at in (1, 3, 5, 7))],
        "NVTX_EVENTS": [(56, 68, 59, "load", PROCESS + 5, None, 0)],
    }
    _, result = why(lab, database(lab.folder / "a.sqlite", tables))
    assert microseconds(result["bills"][0])[f"{IDLE}outside of the runtime", "load"] == 12


def test_each_device_of_each_process_has_a_bill_of_its_own(lab):
    tables = {
        KERNEL: [(0, 30, 0, 7, 1, PROCESS, 1), (0, 90, 1, 7, 1, OTHER, 1)],
        CALLS: [(50, 100, PROCESS + 5, 1, 3), (90, 100, OTHER + 6, 1, 2)],
    }
    _, result = why(lab, database(lab.folder / "a.sqlite", tables))
    busy = {bill["file"]: bill["busy_s"] for bill in result["bills"]}
    names = ["a.sqlite device 0 of process 5", "a.sqlite device 1 of process 6"]
    assert busy == pytest.approx(dict(zip(names, (30e-6, 90e-6), strict=True)))
    assert (f"{IDLE}launching", "cudaLaunchKernel") not in microseconds(result["bills"][0])


def test_a_graph_that_was_recorded_as_one_is_a_row(lab):
    tables = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [(0, 40, 0, 7, PROCESS, 12)]}
    _, result = why(lab, database(lab.folder / "a.sqlite", tables))
    assert microseconds(result["bills"][0])["device busy", "CUDA graph 12"] == pytest.approx(40)


def test_calls_without_a_device_are_a_bill_of_the_host_and_say_so(lab):
    _, result = why(lab, database(lab.folder / "a.sqlite", {CALLS: STEP[CALLS]}))
    (bill,) = result["bills"]
    assert bill["busy_s"] is None
    assert microseconds(bill)["calls of the host", "cudaMemcpy"] == pytest.approx(30)
    assert bill["note"].startswith("launches without a kernel in the file: 1 (")


def test_launches_whose_kernels_cannot_be_read_leave_the_device_out(lab):
    unread = {**STEP, KERNEL: [(20, -5, 0, 7, 1, PROCESS, 1)]}
    _, result = why(lab, database(lab.folder / "a.sqlite", unread))
    (bill,) = result["bills"]
    assert bill["busy_s"] is None
    assert not [row for row in bill["rows"] if row["cause"].startswith("device")]
    assert "launches without a kernel in the file: 1 (" in bill["note"]
    assert "times that cannot be, left out: 1" in bill["note"]


def test_copies_of_a_host_that_launches_nothing_are_busy_time(lab):
    copies = {COPY: STEP[COPY], CALLS: STEP[CALLS][1:]}
    _, result = why(lab, database(lab.folder / "a.sqlite", copies))
    assert result["bills"][0]["busy_s"] == pytest.approx(10e-6)
    assert not result["bills"][0]["note"]


def test_an_end_that_was_never_written_is_left_out_and_said(lab):
    never = (60, (2**63 - 1) // US, 0, 7, 1, PROCESS, 1)
    path = database(lab.folder / "a.sqlite", {**STEP, KERNEL: [*STEP[KERNEL], never]})
    _, result = why(lab, path)
    (bill,) = result["bills"]
    assert microseconds(bill) == pytest.approx(TRUTH, abs=1e-3)
    assert bill["note"] == "events with times that cannot be, left out: 1"


def test_an_export_is_opened_to_be_read_and_nothing_else(lab):
    path = database(lab.folder / "a.sqlite", STEP, journal="wal")
    before = path.read_bytes()
    why(lab, path)
    assert path.read_bytes() == before
    assert not [each for each in lab.folder.iterdir() if each.name.startswith("a.sqlite-")]


def test_what_is_no_export_is_named(lab):
    whole = database(lab.folder / "a.sqlite", {CALLS: STEP[CALLS] * 999}).read_bytes()
    text = {CALLS: [(0, 1, "no number", 1, 2)]}
    foreign = sqlite3.connect(lab.folder / "foreign.sqlite")
    foreign.execute("CREATE TABLE users (name)")
    foreign.close()
    (lab.folder / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    (lab.folder / "empty.sqlite").write_bytes(b"")
    (lab.folder / "report1.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1.\n")
    database(lab.folder / "none.sqlite", {})
    database(lab.folder / "text.sqlite", text)
    told = {
        "foreign.sqlite": "no export of Nsight Systems or rocprofv3; its tables: users",
        "cut.sqlite": "not written to its end",
        "empty.sqlite": "the file is empty",
        "report1.nsys-rep": "nsys export --type sqlite --output",
        "none.sqlite": "no kernels, copies, calls or ranges in it",
        "text.sqlite": "columns of other types",
    }
    for name, words in told.items():
        finished, _ = why(lab, lab.folder / name, code=2)
        assert words in finished.stderr


SUMMARY = """Processing [report1.sqlite] with [cuda_gpu_kern_sum.py]...

Time (%),Total Time (ns),Instances,Avg (ns),Name
75.0,3000,2,1500.0,"gemm(float*, int)"
25.0,1000,1,1000.0,relu

Processing [report1.sqlite] with [cuda_api_sum.py]...

Time (%),Total Time (ns),Num Calls,Avg (ns),Name
100.0,9000,3,3000.0,cudaMalloc
"""


def test_a_summary_has_a_table_and_says_that_it_has_no_timeline(lab):
    path = lab.folder / "stats.csv"
    path.write_text(SUMMARY)
    finished, result = why(lab, path)
    kernels, calls = result["bills"]
    names = ["stats.csv: cuda_gpu_kern_sum", "stats.csv: cuda_api_sum"]
    assert [bill["file"] for bill in result["bills"]] == names
    truth = {("device busy", "gemm(float*, int)"): 3, ("device busy", "relu"): 1}
    assert microseconds(kernels) == pytest.approx(truth)
    assert microseconds(calls) == pytest.approx({("calls of the host", "cudaMalloc"): 9})
    assert kernels["busy_s"] is None
    assert "a summary has no timeline" in finished.stdout


@pytest.mark.parametrize(
    ("unit", "total"),
    [("ns", '"5,850,000"'), ("us", 5850), ("μs", '"5,850.0"'), ("ms", 5.85), ("s", 0.00585)],
)
def test_totals_are_read_in_the_unit_of_their_column(lab, unit, total):
    path = lab.folder / "stats.csv"
    head = f"Time (%),Total Time ({unit}),Instances,Avg ({unit}),Name"
    path.write_text(f"{head}\n100.0,{total},3,,gemm\n")
    _, result = why(lab, path)
    (bill,) = result["bills"]
    assert bill["file"] == "stats.csv"
    assert microseconds(bill) == pytest.approx({("device busy", "gemm"): 5850})


def test_a_trace_of_a_device_in_csv_is_read_with_that_of_the_calls_beside_it(lab):
    (lab.folder / "r_cuda_api_trace.csv").write_text(
        "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid\n1000,1500,cudaLaunchKernel,0,2,9,9\n"
    )
    (lab.folder / "r_cuda_gpu_trace.csv").write_text(
        "Start (ns),Duration (ns),CorrId,Device,Ctx,Strm,Name\n"
        "0,1000,1,NVIDIA H100 (0),1,7,[CUDA memcpy Host-to-Device]\n"
        '2000,2000,2,NVIDIA H100 (0),1,7,"gemm(float*, int)"\n'
    )
    _, result = why(lab, lab.folder / "r_cuda_gpu_trace.csv")
    (bill,) = result["bills"]
    assert bill["file"] == "r_cuda_gpu_trace.csv and r_cuda_api_trace.csv"
    assert microseconds(bill) == pytest.approx(
        {
            ("device copies", "CUDA memcpy Host-to-Device"): 1,
            ("device busy", "gemm(float*, int)"): 2,
            (f"{IDLE}launching", "cudaLaunchKernel"): 1,
        }
    )


def test_two_exports_have_a_table_of_what_differs(lab):
    slower = {**STEP, KERNEL: [(20, 80, 0, 7, 1, PROCESS, 1)]}
    first = database(lab.folder / "a.sqlite", STEP)
    second = database(lab.folder / "b.sqlite", slower)
    finished, result = why(lab, first, second)
    changes = {
        (each["cause"], each["of"]): (each["second_s"] - each["first_s"]) * 1e6
        for each in result["changes"]
    }
    assert changes["device busy", None] == pytest.approx(30, abs=1e-3)
    assert changes["device busy", "gemm(float*)"] == pytest.approx(30, abs=1e-3)
    assert changes[f"{IDLE}launching", None] == pytest.approx(0, abs=1e-3)
    assert next(iter(changes)) == ("device busy", None)
    assert "what differs, in all" in finished.stdout
    assert "+30.0 µs" in finished.stdout


def test_what_has_no_device_cannot_be_compared_with_what_has(lab):
    first = database(lab.folder / "a.sqlite", STEP)
    second = database(lab.folder / "b.sqlite", {CALLS: STEP[CALLS]})
    finished, _ = why(lab, first, second)
    assert "cannot be compared" in finished.stdout
