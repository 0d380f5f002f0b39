"""Streams of a device that nothing waits for, by a recording: work on them is in no event of the current stream."""

from __future__ import annotations

from gpulab.analysis.trace import Trace

_WAITS = ("StreamWaitEvent", "EventSynchronize", "EventQuery", "StreamSynchronize", "StreamQuery")
"""Calls by which a stream, or the host, waits for another; waiting for the whole device says nothing of streams."""
_GRAPH = "GraphLaunch"
"""A graph joins its streams by itself."""


def streams_not_joined(trace: Trace) -> int:
    """How many streams have work in the window after which nothing waits; the current one, which needs no wait, aside.

    What waits is queued after the work that it waits for, and the current stream takes up to one place.
    """
    calls = [call for calls in trace.calls.values() for call in calls]
    launches = {call.correlation: call for call in calls if call.correlation is not None}
    latest: dict[int | str, float] = {}
    for event in trace.inside(trace.device):
        launch = launches.get(-1 if event.correlation is None else event.correlation)
        if launch is not None and _GRAPH not in launch.name:
            stream = event.thread[1]
            latest[stream] = max(latest.get(stream, launch.start), launch.start)
    last_wait = max((call.start for call in calls if any(name in call.name for name in _WAITS)), default=-1.0)
    open_ended = sum(launched > last_wait for launched in latest.values())
    return max(0, open_ended - 1)
