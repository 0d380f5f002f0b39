"""JSON of rocprof: the trace of its first versions, and rocprofv3's own form.

https://rocm.docs.amd.com/projects/rocprofiler-sdk (using rocprofv3, JSON output).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from gpulab.features.other_profilers.records import CALL, COPY, KERNEL, RANGE, Record

_MOST_BYTES = 256 << 20
"""Unpacked: it is read as a whole, and takes ten times as much."""
_GPU = 2
"""The type of an agent."""


def read_json(file: BinaryIO) -> Iterator[Record]:
    """Yield the events of a file. ValueError where it is no JSON, too large, or lacks what each
    event has.
    """
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"larger than {_MOST_BYTES} bytes unpacked: record a shorter time")
    try:
        document = json.loads(data, strict=False)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON of rocprof, not written to its end: {error}") from None
    try:
        if "traceEvents" in document:
            yield from _first_versions(document["traceEvents"])
            return
        for process in document["rocprofiler-sdk-tool"]:
            yield from _rocprofv3(process)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"JSON of rocprof without what each event has: {error}") from None


def _first_versions(entries: list[dict[str, Any]]) -> Iterator[Record]:
    """Of rocprof and rocprofv2: numbers are texts, and the kind of an event is its process."""
    names = {
        str(entry["pid"]): entry["args"]["name"]
        for entry in entries
        if entry.get("name") == "process_name"
    }
    for entry in entries:
        place = names.get(str(entry.get("pid")), "")
        about = entry.get("args", {})
        if entry.get("ph") != "X" or "BeginNs" not in about:
            continue
        start, end = int(about["BeginNs"]), int(about["EndNs"])
        process, thread = int(about.get("pid", 0)), int(about.get("tid", 0))
        if place.startswith("GPU") or place == "COPY":
            device, stream = int(about.get("dev-id", 0)), int(about.get("stream-id", 0))
            kind = COPY if place == "COPY" else KERNEL
            yield Record(kind, entry["name"], start, end, process, stream, device)
        elif place == "CPU HIP API":
            yield Record(CALL, entry["name"], start, end, process, thread)
        elif place.startswith("Markers"):
            yield Record(RANGE, entry["name"], start, end, process, thread)


def _rocprofv3(document: dict[str, Any]) -> Iterator[Record]:
    process = document["metadata"]["pid"]
    found = document["buffer_records"]
    kinds = document["strings"]["buffer_records"]
    symbols = {symbol["kernel_id"]: symbol for symbol in document["kernel_symbols"]}
    gpus = {agent["id"]["handle"] for agent in document["agents"] if agent.get("type") == _GPU}
    marks = {mark["key"]: mark["value"] for mark in document["strings"].get("marker_api", [])}
    for each in found.get("kernel_dispatch", []):
        about = each["dispatch_info"]
        symbol = symbols[about["kernel_id"]]
        stream = each.get("stream_id", about["queue_id"])["handle"]
        name = symbol.get("formatted_kernel_name") or symbol["kernel_name"]
        yield Record(KERNEL, name, *_when(each), process, stream, about["agent_id"]["handle"])
    for each in found.get("memory_copy", []):
        source, target = each["src_agent_id"]["handle"], each["dst_agent_id"]["handle"]
        device = target if target in gpus else source
        stream = each.get("stream_id", {"handle": 0})["handle"]
        yield Record(COPY, _operation(kinds, each), *_when(each), process, stream, device)
    for each in found.get("hip_api", []):
        yield Record(CALL, _operation(kinds, each), *_when(each), process, each["thread_id"])
    for each in found.get("marker_api", []):
        name = marks.get(each["correlation_id"]["internal"])
        if name:
            yield Record(RANGE, name, *_when(each), process, each["thread_id"])


def _when(record: dict[str, Any]) -> tuple[int, int]:
    return record["start_timestamp"], record["end_timestamp"]


def _operation(kinds: list[dict[str, Any]], record: dict[str, Any]) -> str:
    return str(kinds[record["kind"]]["operations"][record["operation"]])
