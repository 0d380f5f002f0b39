"""Streams that a recording shows no wait for; whether work on them is over, no event of the current
stream knows.
"""

import pytest

from gpulab.features.goodput.trace import WINDOW, read, streams_not_joined

CURRENT, SIDE, OTHER = 7, 20, 24


def trace(*calls):
    """Of (name of a call, the stream that it launches on or None), a microsecond each."""
    events = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": WINDOW,
            "ts": 0,
            "dur": 1000,
            "pid": 1,
            "tid": 1,
        }
    ]
    for number, (name, stream) in enumerate(calls):
        call = {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": name,
            "ts": 10 * number,
            "dur": 1,
            "pid": 1,
            "tid": 1,
        }
        events.append({**call, "args": {"correlation": number}})
        if stream is not None:
            kernel = {
                "ph": "X",
                "cat": "kernel",
                "name": "k",
                "ts": 10 * number + 5,
                "dur": 3,
                "pid": 0,
                "tid": stream,
            }
            events.append({**kernel, "args": {"correlation": number}})
    return read({"traceEvents": events})


KERNEL, WAIT, DEVICE = (
    "cudaLaunchKernel",
    ("cudaStreamWaitEvent", None),
    ("cudaDeviceSynchronize", None),
)
CASES = {
    "one stream": ([(KERNEL, CURRENT), (KERNEL, CURRENT), DEVICE], 0),
    "joined": ([(KERNEL, CURRENT), WAIT, (KERNEL, SIDE), WAIT, DEVICE], 0),
    "joined before the current one goes on": ([(KERNEL, SIDE), WAIT, (KERNEL, CURRENT), DEVICE], 0),
    "joined by the host": (
        [(KERNEL, CURRENT), (KERNEL, SIDE), ("cudaStreamSynchronize", None), DEVICE],
        0,
    ),
    "a graph": ([("cudaGraphLaunch", CURRENT), ("cudaGraphLaunch", SIDE), DEVICE], 0),
    "never joined": ([(KERNEL, CURRENT), (KERNEL, SIDE), DEVICE], 1),
    "forked and not joined": (
        [(KERNEL, CURRENT), WAIT, (KERNEL, SIDE), (KERNEL, CURRENT), DEVICE],
        1,
    ),
    "the last of two is not": (
        [WAIT, (KERNEL, CURRENT), (KERNEL, SIDE), (KERNEL, OTHER), DEVICE],
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_streams_that_nothing_waits_for_are_counted(name):
    calls, count = CASES[name]
    assert streams_not_joined(trace(*calls)) == count
