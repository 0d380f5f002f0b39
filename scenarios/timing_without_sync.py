"""Timing without a sync: a timer that does not wait measures the launch, not the work.

**In short:** a call returns when its kernel is queued, so a timer has to wait for the device before it is read.

```text
                   time ─────────────────────────────────▶
one_launch    CPU  ▸│ no wait: 6.5 us
              GPU   █████████████████████│ block: 256 us
many_launches CPU  ▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸│ no wait: 2.86 ms
              GPU   █ █ █ █ █ █ █ █ █ █ █│ block: 2.82 ms
with_item     CPU  ▸ .item() waits ......│ no wait: 272 us
              GPU   ████████████████████ │ block: 273 us
                   ▸ launch   █ kernel   │ the timer is read
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `one_launch` | one long kernel | baseline: without a wait 0.025x of the block's time | the call returns after its launch |
| `many_launches` | 512 short kernels | without a wait the same; device events 0.57x | the host is the slower side, and its gaps are hidden from events |
| `with_item` | one kernel, then `.item()` | every clock agrees within 2 % | the step itself waits |

## What a call does

A GPU works through a queue (a *stream*) of kernels, the functions that it runs. The host, which is
the CPU thread that runs Python, *launches* them: `torch.exp(x)` puts a kernel into the queue and
returns after some microseconds, even if it runs for a second. `torch.cuda.synchronize()` has to come
before the timer starts, and again before it is read.

## Four clocks

- block, one wait: steps in a row with one synchronization at the end. It is what a loop in
  production takes; the other columns are multiples of it.
- no wait: until the calls return. It is right only where the host is slower, or where the step waits
  by itself (`.item()`, `print`, `.cpu()`).
- wait each step: adds some ten microseconds to a step, for a launch and the wake-up of the host.
- device events: CUDA events on the device's clock. gpulab queues a block behind a kernel that only
  waits, which hides launches. In your own loop events also contain gaps in which the device waits.

Of the 1.60 ms that events show for `many_launches`, kernels run for 0.96; the rest is the device's
way from one to the next.

## Which clock to use

Compare kernels by events, steps by blocks with one wait, and requests by a wait each time. A time
below what memory bandwidth allows is a sign of a forgotten wait. On a CPU calls wait: the lesson
needs CUDA.
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
    terms=("stream", "torch profiler", "cuda events", "benchmark", "synchronize"),
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
