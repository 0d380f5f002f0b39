"""Double buffering: copy batches in and results out while the GPU computes.

**In short:** three engines work at once if each has a stream, and events say what really has to wait.

```text
              time ──────────────────────────────▶
synchronized  in    1111        2222        3333
              GPU       1111        2222        3333
              out           1111        2222        3333
queued        the same, without the gaps for the host
overlapped    in    111122223333
              GPU       111122223333
              out           111122223333
              1, 2, 3: batches
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `synchronized` | the host waits after each copy and computation | baseline, 32.1 ms | one engine works at a time |
| `queued` | the host never waits; one stream | 1.02x | a stream runs everything in order: only the gaps go |
| `overlapped` | a stream for each engine, two buffers of each kind | 2.5x, 13.1 ms | 89 % of the copies are hidden behind other work |

## Who waits for whom

A GPU has an engine for copies in each direction beside its streaming multiprocessors (SMs). A
single stream lets one of the three work at a time. With a stream for each, events say what must
wait: computing for its batch, the copy out for its result, a buffer for its last reader. The device
waits by itself while the host only queues. Two buffers of each kind let one be filled while the
other is used.

## How much it can gain

A step is a pass over 16 batches, and takes at best as long as its busiest engine alone:

    speedup <= (in + compute + out) / longest of the three, at most 3x

The sizes make the three about equal on an H100. 32 MiB over PCIe 5 take 0.61 ms at 55 GB/s in
either direction, and the two matrix products (matmuls), 34 GFLOP, 0.66 ms at 52 TFLOP/s. Elsewhere
sweep `hidden` for the balance. The first copy in and the last copy out have nothing to overlap
with.

In the goodput table the column "hidden" (not the parameter) is the share of the copies' time behind
other work.

## Pitfalls

Host buffers must be page-locked, as they are in all variants, or the host is held up in each copy.
Forget one event and the step is fast and wrong, and only sometimes: here every result is checked.
A step starts and ends on the current stream, so no copy runs on into the next measurement. The
lesson needs CUDA.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    needs=("cuda",),
    roof="host to device",
    params={"batches": 16, "mib": 32, "hidden": 1024},
    smoke={"batches": 5, "mib": 1, "hidden": 64},
    sweep={"hidden": (256, 512, 1024, 2048, 4096)},
    ladder=True,
    item="batch",
    no_effect_reason="one of the three engines is busy nearly all the time, and the others had room beside it",
    claim=(
        "performance basics: transfers hidden behind computing; our own measurement: 2.49x on "
        "an H200"
    ),
    terms=("h2d", "d2h", "streams", "overlap"),
)
_WIDTH, _BUFFERS = 1024, 2


@scenario.variant
def synchronized(lab, batches, mib, hidden):
    """One stream, and the host waits after every copy and every computation."""
    return _one_stream(lab, batches, mib, hidden, torch.cuda.synchronize)


@scenario.variant
def queued(lab, batches, mib, hidden):
    """One stream, and the host never waits: the gaps are gone, nothing overlaps."""
    return _one_stream(lab, batches, mib, hidden, lambda: None)


@scenario.variant
def overlapped(lab, batches, mib, hidden):
    """Three streams with events: copies in both directions run during the computation."""
    given, results, coming, going, compute = _tensors(lab, batches, mib, hidden)
    inward, outward = torch.cuda.Stream(), torch.cuda.Stream()
    arrived, computed, left = ([torch.cuda.Event() for _ in range(_BUFFERS)] for _ in range(3))

    def step():
        current = torch.cuda.current_stream()
        for stream in (inward, outward):
            stream.wait_stream(current)
        for index, (batch, result) in enumerate(zip(given, results, strict=True)):
            slot, again = index % _BUFFERS, index >= _BUFFERS
            with torch.cuda.stream(inward):
                if again:
                    inward.wait_event(computed[slot])  # the batch that was here has been read
                coming[slot].copy_(batch, non_blocking=True)
                arrived[slot].record(inward)
            with lab.phase("copy"):
                current.wait_event(arrived[slot])
                if again:
                    current.wait_event(left[slot])  # the result that was here has been copied out
            with lab.useful():
                compute(coming[slot], going[slot])
            computed[slot].record(current)
            with torch.cuda.stream(outward):
                outward.wait_event(computed[slot])
                result.copy_(going[slot], non_blocking=True)
                left[slot].record(outward)
        with lab.phase("copy"):
            for stream in (inward, outward):
                current.wait_stream(stream)

    return _work(step, given, results, hidden)


def _one_stream(lab, batches, mib, hidden, wait):
    given, results, coming, going, compute = _tensors(lab, batches, mib, hidden)

    def step():
        for batch, result in zip(given, results, strict=True):
            with lab.phase("copy"):
                coming[0].copy_(batch, non_blocking=True)
                wait()
            with lab.useful():
                compute(coming[0], going[0])
                wait()
            with lab.phase("copy"):
                result.copy_(going[0], non_blocking=True)
                wait()

    return _work(step, given, results, hidden)


def _tensors(lab, batches, mib, hidden):
    """Page-locked batches and results, the device's buffers of both kinds, and what is computed
    between them.
    """
    rows = mib * MiB // 4 // _WIDTH
    given, results = (torch.empty(batches, rows, _WIDTH, pin_memory=True) for _ in range(2))
    given.copy_(torch.randn(given.shape, device=lab.device))
    coming, going = (torch.empty(_BUFFERS, rows, _WIDTH, device=lab.device) for _ in range(2))
    up = torch.randn(_WIDTH, hidden, device=lab.device) / _WIDTH**0.5
    down = torch.randn(hidden, _WIDTH, device=lab.device) / hidden**0.5
    between = torch.empty(rows, hidden, device=lab.device)

    def compute(batch, result):
        torch.mm(batch, up, out=between).relu_()
        torch.mm(between, down, out=result)

    return given, results, coming, going, compute


def _work(step, given, results, hidden):
    return Work(
        step,
        bytes=given.nbytes,  # across the link, in the direction of the roof
        flops=4 * given.numel() * hidden,
        dtype="fp32",
        items=len(given),
        inputs=given,
        output=results,
    )
