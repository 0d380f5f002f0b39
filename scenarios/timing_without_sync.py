"""Timing without a sync: a timer that does not wait measures the launch, not the work.

A GPU works through a queue (a *stream*) of kernels, the functions that it runs. The host, which is
the CPU thread that runs Python, *launches* them: a call such as `torch.exp(x)` puts a kernel into
the queue and returns after some microseconds, whether it runs for one microsecond or for a second.
`time.perf_counter()` around the call shows the time of the launch. `torch.cuda.synchronize()` has
to come before the timer starts, and again before it is read.

One exponential function over a tensor is done by one long kernel, by many short ones, and by one
with `.item()` after it. Four clocks time every step:

- block, one wait: a block of steps with one synchronization at its end. This is what a loop in production takes,
  launches included. The other columns are multiples of it.
- no wait: the host's timer until the calls return. Too short where kernels take longer than their launches (H200, our
  own measurement: 6.5 us for a step of 256 us, 0.025x). Right where the host is slower, and where the step waits by
  itself (`.item()`, `print`, `.cpu()`).
- wait each step: one synchronization per step adds some ten microseconds (a launch, and the wake-up of the host).
- device events: CUDA events on the device's own clock. gpulab queues a block behind a kernel that only waits, which
  hides launches, and gets the time of the kernels and of the device's own way from one to the next (512 on an H200:
  1.60 ms, of which they run for 0.96; the block took 2.82). In your own loop events also contain gaps in which the
  device waits for the host.

Compare kernels by events, steps by blocks with one wait, the latency of a request by a wait each
time. A time below what memory bandwidth allows is a sign of a forgotten wait. On a CPU calls wait:
the lesson needs CUDA.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    needs=("cuda",),
    shows="clocks",
    params={"mib": 512, "launches": 512},
    smoke={"mib": 1, "launches": 8},
    sweep={"mib": (1, 8, 64, 512)},
    item="element",
    claim="performance basics: without a wait, only the launch is timed",
    terms=("torch profiler", "cuda events", "benchmark", "synchronize"),
)


@scenario.variant
def one_launch(lab, mib):
    """One kernel over the whole tensor: the call returns long before it has run."""
    data, out = _tensors(lab, mib)
    return _work(lab, data, out, lambda: torch.exp(data, out=out))


@scenario.variant
def many_launches(lab, mib, launches):
    """A kernel for each piece of the tensor: shorter than their launches, so the device waits for
    the host.
    """
    data, out = _tensors(lab, mib)
    pieces = list(zip(data.chunk(launches), out.chunk(launches), strict=True))

    def exponentials():
        for source, target in pieces:
            torch.exp(source, out=target)

    return _work(lab, data, out, exponentials)


@scenario.variant
def with_item(lab, mib):
    """One kernel, then `.item()` of the last element, which waits: no timer can forget it."""
    data, out = _tensors(lab, mib)

    def exponential():
        torch.exp(data, out=out)
        return out[-1].item()

    return _work(lab, data, out, exponential)


def _tensors(lab, mib):
    data = torch.randn(mib * MiB // 4, device=lab.device)
    return data, torch.empty_like(data)


def _work(lab, data, out, calls):
    def step():
        with lab.useful():
            calls()

    return Work(
        step,
        flops=data.numel(),
        bytes=data.nbytes + out.nbytes,
        dtype="fp32",
        items=data.numel(),
        inputs=data,
        output=out,
    )
