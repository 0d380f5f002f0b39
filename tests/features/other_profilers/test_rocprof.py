"""`gpulab --why` of what rocprof writes: JSON of its first versions and of rocprofv3, its database
and its CSV.
"""

import gzip
import json
import sqlite3

import pytest

TRUTH = {  # us: a kernel, a copy, and idle by the calls
    ("device busy", "gemm(float*)"): 30,
    ("device copies", "MEMORY_COPY_HOST_TO_DEVICE"): 10,
    ("device idle: launching", "hipLaunchKernel"): 10,
    ("device idle: the host waits for the device", "hipDeviceSynchronize"): 5,
    ("device idle: the host copies", "hipMemcpy"): 20,
    ("device idle: outside of the runtime", ""): 25,
}
ORIGIN = 1_700_000_000_000_000_000
CALLS = {"hipLaunchKernel": (0, 10), "hipDeviceSynchronize": (40, 55), "hipMemcpy": (70, 100)}
COUNTERS = '"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"\n1,"gemm","SQ_WAVES",64\n'
HSA = '"Domain","Function","Process_Id","Thread_Id","Start_Timestamp","End_Timestamp"\n'
HSA += '"HSA_CORE_API","hsa_init",5,5,100,200\n'
GPU, CPU = {"handle": 77}, {"handle": 3}


def nanoseconds(us):
    return ORIGIN + us * 1_000


def when(start, end):
    return {"start_timestamp": nanoseconds(start), "end_timestamp": nanoseconds(end)}


def own_form():
    kernel = {"agent_id": GPU, "queue_id": {"handle": 16}, "kernel_id": 8}
    names = list(CALLS)
    calls = [
        {"kind": 1, "operation": names.index(name), "thread_id": 5, **when(*span)}
        for name, span in CALLS.items()
    ]
    copy = {"kind": 2, "operation": 1, "src_agent_id": CPU, "dst_agent_id": GPU}
    return {
        "rocprofiler-sdk-tool": [
            {
                "metadata": {"pid": 5},
                "agents": [{"id": CPU, "type": 1}, {"id": GPU, "type": 2}],
                "strings": {
                    "buffer_records": [
                        {"kind": "NONE", "operations": []},
                        {"kind": "HIP_RUNTIME_API", "operations": names},
                        {
                            "kind": "MEMORY_COPY",
                            "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"],
                        },
                    ]
                },
                "kernel_symbols": [
                    {"kernel_id": 8, "kernel_name": "a.kd", "formatted_kernel_name": "gemm(float*)"}
                ],
                "buffer_records": {
                    "kernel_dispatch": [{**when(20, 50), "kind": 0, "dispatch_info": kernel}],
                    "memory_copy": [{**copy, **when(80, 90)}],
                    "hip_api": calls,
                },
            }
        ]
    }


def first_form():
    places = {"2": "CPU HIP API", "1": "COPY", "6": "GPU0"}
    named = [
        {"args": {"name": name}, "ph": "M", "pid": int(pid), "name": "process_name"}
        for pid, name in places.items()
    ]
    spans = [("2", name, span) for name, span in CALLS.items()]
    spans += [("1", "MEMORY_COPY_HOST_TO_DEVICE", (80, 90)), ("6", "gemm(float*)", (20, 50))]
    events = [
        {
            "ph": "X",
            "name": name,
            "pid": pid,
            "tid": "0",
            "ts": str(nanoseconds(start) // 1_000),
            "dur": str(end - start),
            "args": {
                "BeginNs": str(nanoseconds(start)),
                "EndNs": str(nanoseconds(end)),
                "pid": "5",
                "tid": "5",
            },
        }
        for pid, name, (start, end) in spans
    ]
    return {"traceEvents": [{}, *named, *events]}


def in_database(path):
    made = sqlite3.connect(path)
    made.executescript(
        "CREATE TABLE rocpd_kernel_dispatch (id); CREATE TABLE kernels (name, start, end, pid,"
        " stream_id, agent_abs_index); CREATE TABLE memory_copies (name, start, end, pid,"
        " stream_id, src_agent_abs_index, dst_agent_abs_index); CREATE TABLE regions (category,"
        " name, start, end, pid, tid)"
    )
    times = nanoseconds(20), nanoseconds(50)
    made.execute("INSERT INTO kernels VALUES (?, ?, ?, 5, 0, 2)", ("gemm(float*)", *times))
    copy = ("MEMORY_COPY_HOST_TO_DEVICE", nanoseconds(80), nanoseconds(90))
    made.execute("INSERT INTO memory_copies VALUES (?, ?, ?, 5, 0, 0, 2)", copy)
    for name, (start, end) in CALLS.items():
        values = (name, nanoseconds(start), nanoseconds(end))
        made.execute("INSERT INTO regions VALUES ('HIP_RUNTIME_API_EXT', ?, ?, ?, 5, 5)", values)
    made.commit()
    made.close()


def in_tables(folder):
    lines = [
        f'"HIP_RUNTIME_API","{name}",5,5,1,{nanoseconds(start)},{nanoseconds(end)}'
        for name, (start, end) in CALLS.items()
    ]
    head = '"Domain","Function","Process_Id","Thread_Id","Correlation_Id"'
    times = '"Start_Timestamp","End_Timestamp"'
    (folder / "5_hip_api_trace.csv").write_text("\n".join([f"{head},{times}", *lines]))
    (folder / "5_kernel_trace.csv").write_text(
        f'"Kind","Agent_Id","Queue_Id","Kernel_Name",{times}\n'
        f'"KERNEL_DISPATCH","Agent 4",1,"gemm(float*)",{nanoseconds(20)},{nanoseconds(50)}\n'
    )
    (folder / "5_memory_copy_trace.csv").write_text(
        f'"Kind","Direction","Source_Agent_Id","Destination_Agent_Id",{times}\n'
        f'"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE","Agent 0","Agent 4",'
        f"{nanoseconds(80)},{nanoseconds(90)}\n"
    )


def bills(lab, path):
    target = lab.folder / "why.json"
    finished = lab.call("--why", path, "--json", target)
    assert finished.code == 0, finished.stderr
    return json.loads(target.read_text())["bills"]


@pytest.mark.parametrize("form", ["first", "own", "packed", "database", "tables"])
def test_calls_of_hip_have_the_causes_of_their_twins(lab, form):
    folder = lab.folder / "written"
    folder.mkdir()
    if form == "tables":
        in_tables(folder)
    elif form == "database":
        in_database(folder / "5_results.db")
    elif form == "packed":
        text = json.dumps(own_form()).encode()
        (folder / "5_results.json.gz").write_bytes(gzip.compress(text))
    else:
        document = first_form() if form == "first" else own_form()
        (folder / "results.json").write_text(json.dumps(document))
    (bill,) = bills(lab, folder)
    found = {(row["cause"], row["of"]): row["seconds"] * 1e6 for row in bill["rows"]}
    assert found == pytest.approx(TRUTH, abs=1e-3)


def test_tables_of_other_runs_are_not_read_with_one(lab):
    folder = lab.folder / "written"
    folder.mkdir()
    in_tables(folder)
    kernels = folder / "5_kernel_trace.csv"
    copies = folder / "5_memory_copy_trace.csv"
    days = str(nanoseconds(90) + 2 * 86_400 * 10**9)
    copies.write_text(
        copies.read_text().replace(str(nanoseconds(80)), days).replace(str(nanoseconds(90)), days)
    )
    (bill,) = bills(lab, kernels)
    assert bill["file"] == "5_kernel_trace.csv and 5_hip_api_trace.csv"
    assert sum(row["seconds"] for row in bill["rows"]) == pytest.approx(100e-6)
    for each in sorted(folder.iterdir()):
        each.rename(folder / each.name.removeprefix("5_"))
    (bill,) = bills(lab, folder)
    assert bill["file"] == "kernel_trace.csv"
    assert sum(row["seconds"] for row in bill["rows"]) == pytest.approx(30e-6)


def test_what_is_not_whole_is_said(lab):
    whole = json.dumps(own_form())
    lacking = own_form()
    del lacking["rocprofiler-sdk-tool"][0]["kernel_symbols"][0]["kernel_id"]
    table = '"Kind","Kernel_Name","Start_Timestamp","End_Timestamp"\n"K","a",x,3\n'
    told = {
        "cut_results.json": (whole[:-300], "not written to its end"),
        "lacking_results.json": (json.dumps(lacking), "without what each event has: 'kernel_id'"),
        "1_kernel_trace.csv": (table, "not a table as the profiler writes it"),
        "a.pftrace": ("\n", "rocprofv3 --output-format json"),
        "b.csv": ("time,value\n1,2\n", "no timestamps of kernels"),
        "2_kernel_trace.csv": ("", "the file is empty"),
        "counter_collection.csv": (COUNTERS, "no timestamps of kernels"),
        "hsa_api_trace.csv": (HSA, "or calls of HIP or CUDA in it"),
    }
    for name, (text, words) in told.items():
        (lab.folder / name).write_text(text)
        finished = lab.call("--why", lab.folder / name)
        assert finished.code == 2
        assert words in finished.stderr
        assert "Traceback" not in finished.stderr


def test_sums_of_rocprof_have_a_table(lab):
    path = lab.folder / "results.stats.csv"
    path.write_text(
        '"Name","Calls","TotalDurationNs"\n"gemm(float*, int)",1,2000\n"hipFree",1,1000\n'
    )
    (bill,) = bills(lab, path)
    causes = {row["cause"]: row["seconds"] for row in bill["rows"]}
    assert causes == pytest.approx({"device busy": 2e-6, "calls of the host": 1e-6})
