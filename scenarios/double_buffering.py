"""Double buffering: copy batches in and results out while the GPU computes.

A GPU has an engine for copies in each direction beside its streaming multiprocessors (SMs), and the
three work at the same time if nothing makes them wait for each other. A single stream does, because
it runs everything in order. With a stream for each engine, events say what really must wait
(computing for its batch, the copy out for its result, a buffer for its last reader), and the device
waits for them by itself while the host only queues. Two buffers of each kind let one be filled
while the other is used.

At best a step (a pass over 16 batches) takes as long as the busiest of the three engines alone: up
to 3x where all take the same time, next to nothing where one takes far longer than the others. The
sizes are such that on an H100 they are about equal: 32 MiB over PCIe 5 take 0.61 ms at 55 GB/s in
either direction, and the two matrix products (matmuls), 34 GFLOP, 0.66 ms at 52 TFLOP/s. Elsewhere
sweep `hidden` for the balance. The first copy in and the last copy out have nothing to overlap
with.

On an H200 `queued` gained 1.02x and `overlapped` 2.49x, with 89 % of the copies hidden (our own
measurement). In the goodput table the column "hidden" (not the parameter) is the share of the
copies' time behind other work; what is left of them stands in the bar as copies.

Host buffers must be page-locked, as they are in all variants here, or the host is held up in each
copy and overlap is left to chance. Forget one event and the step is fast and wrong, and only
sometimes: every variant takes the same batches here, and every result is checked. A step starts and
ends on the current stream, so that no copy runs on into the next measurement.

The lesson needs a CUDA device.
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
