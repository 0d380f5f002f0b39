"""Chrome traces made by hand: what torch.profiler would write, in microseconds, around a window
from 1000 to 2000.
"""

ORIGIN = 1000.0
MAIN = (1, 1)
OTHER_THREAD = (1, 2)


def event(cat, name, start, end, thread=MAIN, **args):
    """One complete event, from `start` to `end` in microseconds after the window begins."""
    pid, tid = thread
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "ts": ORIGIN + start,
        "dur": end - start,
        "pid": pid,
        "tid": tid,
        "args": args,
    }


def window(length=1000):
    return event("user_annotation", "gpulab:window", 0, length)


def phase(name, start, end):
    return event("user_annotation", f"gpulab:{name}", start, end)


def loader(start, end):
    """One batch from a DataLoader with workers."""
    return event(
        "user_annotation",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        start,
        end,
    )


def loader_without_workers(start, end):
    """One batch from a DataLoader that loads it in the calling thread."""
    return event(
        "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, end
    )


def op(name, start, end, thread=MAIN, dims=None):
    return event(
        "cpu_op",
        f"aten::{name}",
        start,
        end,
        thread,
        **({} if dims is None else {"Input Dims": dims}),
    )


def call(name, start, end, correlation=None, thread=MAIN):
    return event(
        "cuda_runtime",
        name,
        start,
        end,
        thread,
        **({} if correlation is None else {"correlation": correlation}),
    )


def kernel(start, end, correlation=None, name="gemm", stream=7):
    return event(
        "kernel",
        name,
        start,
        end,
        (0, stream),
        **({} if correlation is None else {"correlation": correlation}),
    )


def copy(direction, start, end, **args):
    name = f"Memcpy {direction} (Pinned -> Device)"
    return event("gpu_memcpy", name, start, end, (0, 7), **args)


def document(*events, length=1000):
    return {"schemaVersion": 1, "traceEvents": [window(length), *events]}
