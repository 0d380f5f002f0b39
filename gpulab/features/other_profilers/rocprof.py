"""JSON of rocprof: the trace of its first versions, and rocprofv3's own form.

https://rocm.docs.amd.com/projects/rocprofiler-sdk (using rocprofv3, JSON output).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from gpulab.features.other_profilers.records import CALL, COPY, KERNEL, Record

_MOST_BYTES = 256 << 20
"""Unpacked: it is read as a whole, and takes ten times as much."""
_GPU = 2
"""The type of an agent."""
_PLACES = {"CPU HIP API": CALL, "COPY": COPY}


def read_json(file: BinaryIO) -> Iterator[Record]:
    """Yield the events of a file. ValueError where it is no JSON, too large, or lacks what each
    event has.
    """
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"larger than {_MOST_BYTES} bytes unpacked: record a shorter time")
    try:
        document = json.loads(data, strict=False)
        yield from _first_versions(document.get("traceEvents", []))
        for process in document.get("rocprofiler-sdk-tool", []):
            yield from _rocprofv3(process)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON of rocprof, not written to its end: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"JSON of rocprof without what each event has: {error}") from None


def _first_versions(entries: list[dict[str, Any]]) -> Iterator[Record]:
    """Of rocprof and rocprofv2: numbers are texts, and the kind of an event is its process."""
    named = [entry for entry in entries if entry.get("name") == "process_name"]
    names = {str(entry["pid"]): entry["args"]["name"] for entry in named}
    for entry in entries:
        about = entry.get("args", {})
        if entry.get("ph") != "X" or "BeginNs" not in about:
            continue
        place = names.get(str(entry["pid"]), "")
        kind = KERNEL if place.startswith("GPU") else _PLACES.get(place)
        when = int(about["BeginNs"]), int(about["EndNs"])
        process = int(about.get("pid", 0))
        if kind in (KERNEL, COPY):
            device, stream = int(about.get("dev-id", 0)), int(about.get("stream-id", 0))
            yield Record(kind, entry["name"], *when, process, stream, device)
        elif kind is not None:
            yield Record(kind, entry["name"], *when, process, int(about.get("tid", 0)))


def _rocprofv3(document: dict[str, Any]) -> Iterator[Record]:
    process = document["metadata"]["pid"]
    found = document["buffer_records"]
    names = [kind["operations"] for kind in document["strings"]["buffer_records"]]
    symbols = {symbol["kernel_id"]: symbol for symbol in document["kernel_symbols"]}
    agents = [agent for agent in document["agents"] if agent.get("type") == _GPU]
    gpus = {agent["id"]["handle"]: agent.get("node_id", 0) for agent in agents}
    for each in found.get("kernel_dispatch", []):
        about = each["dispatch_info"]
        symbol = symbols[about["kernel_id"]]
        name = symbol.get("formatted_kernel_name") or symbol["kernel_name"]
        queue, device = about["queue_id"]["handle"], gpus[about["agent_id"]["handle"]]
        yield Record(KERNEL, name, *_when(each), process, queue, device)
    for each in found.get("memory_copy", []):
        name = names[each["kind"]][each["operation"]]
        source, target = each["src_agent_id"]["handle"], each["dst_agent_id"]["handle"]
        device = gpus[target if target in gpus else source]
        yield Record(COPY, name, *_when(each), process, 0, device)
    for each in found.get("hip_api", []):
        name = names[each["kind"]][each["operation"]]
        yield Record(CALL, name, *_when(each), process, each["thread_id"])


def _when(record: dict[str, Any]) -> tuple[int, int]:
    return record["start_timestamp"], record["end_timestamp"]
