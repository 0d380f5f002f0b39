"""Pinned memory: page-locked host buffers are copied at the speed of the link.

**In short:** a GPU reads page-locked memory directly, and every other buffer is first copied on the CPU.

```text
                 time ────────────────────────────▶
pageable         CPU   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  stages each piece
                 link     █  █  █  █  █  █ waits for each
pinned           link  ██████              reads the buffer
copy_then_work   link  ██████   ██         waits for the host
                 CPU         ▒▒▒
work_during_copy link  ████████            the host works
                 CPU   ▒▒▒                 meanwhile
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `pageable` | ordinary memory | baseline, 8.1 ms | the CPU reads and writes every byte, and the link waits |
| `pinned` | page-locked memory, allocated once | 6.5x, 1.25 ms, 98 % of the link | the copy engine reads it directly |
| `pinned_non_blocking` | the host does not wait between copies | 1.02x over `pinned`: 20 us less | it saves the wait between two copies; the link is no faster |
| `pin_per_call` | `pin_memory()` in every step | 0.63x, 13.1 ms | the batch is staged after all, on one thread |
| `copy_then_work` | a quarter is pageable, and staged after the copy | 3.45 ms, 2.8 times `pinned` | that is what the host's work costs |
| `work_during_copy` | the same work, during the copy | 1.74 ms, 2.0x over `copy_then_work` | saves at most the shorter of the two times |

## Why ordinary memory is slow

The copy engine reads physical addresses, and the system may move or swap a pageable page at any
time. So the driver copies it, piece by piece, into a page-locked (pinned) buffer of its own.
The link (PCIe, 16 lanes) could carry, before protocol overhead:

    PCIe 4: 32 GB/s      PCIe 5: 64 GB/s

## What non_blocking does

With `non_blocking=True` the host goes on before the copy has ended. That helps only a host with
other work. From pageable memory it changes little: the staging remains.

## Where pinning does not help

Small copies gain less, as each has the latency of a launch (sweep the size). So does a fast CPU on
a slow link. On a CPU nothing crosses a link: the lesson needs CUDA.

Pinning is not free. `pin_memory()` in every step copies on the host, without the driver's overlap of
staging and sending. Its first call also page-locks new memory, a system call that takes longer than
the copy. Allocate pinned buffers once and keep them. By default PyTorch rounds such blocks up to a
power of two and keeps them; that memory is lost to the rest of the system.

## Two pitfalls

Do not overwrite a pinned buffer before its copy has ended: the code waits for an event. Data copied
*to* the host with `non_blocking=True` is there only after a wait for the stream.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    needs=("cuda",),
    roof="host to device",
    params={"mib": 64},
    smoke={"mib": 4},
    sweep={"mib": (1, 4, 16, 64, 256)},
    claim="performance basics, quick-start guide and bottleneck guide: 2-6x",
    no_effect_reason=(
        "the same bytes cross the link at the same speed: non_blocking frees the host, not the link"
    ),
    terms=("h2d", "pcie", "host to device", "memcpy", "page-locked", "cudaHostAlloc"),
)


@scenario.variant
def pageable(lab, mib):
    """Ordinary memory: the driver stages every byte."""
    return _copies(lab, _pageable(lab, mib))


@scenario.variant
def pinned(lab, mib):
    """Page-locked memory, allocated once: the copy engine reads it directly."""
    return _copies(lab, [part.pin_memory() for part in _pageable(lab, mib)])


@scenario.variant(against="pinned")
def pinned_non_blocking(lab, mib):
    """The same buffers, and the host does not wait for the copies; it has nothing else to do."""
    return _copies(lab, [part.pin_memory() for part in _pageable(lab, mib)], non_blocking=True)


@scenario.variant
def pin_per_call(lab, mib):
    """The trap: pageable memory is pinned anew in every step, which copies it on the host first."""
    return _copies(lab, _pageable(lab, mib), prepare=torch.Tensor.pin_memory)


@scenario.variant(against="pinned")
def copy_then_work(lab, mib):
    """The host waits for the copy of three quarters, then moves the last quarter to a pinned
    buffer.
    """
    return _with_host_work(lab, mib, non_blocking=False)


@scenario.variant(against="copy_then_work")
def work_during_copy(lab, mib):
    """The same work of the host, done while the copy engine reads the rest."""
    return _with_host_work(lab, mib, non_blocking=True)


def _pageable(lab, mib):
    """A batch on the host, in two tensors: a quarter, and the rest."""
    quarter = mib * MiB // 16  # fp32
    return [torch.rand(count, device=lab.device).cpu() for count in (quarter, 3 * quarter)]


def _copies(lab, host, *, non_blocking=False, prepare=lambda part: part):
    on_device = [torch.empty_like(part, device=lab.device) for part in host]

    def step():
        for to, part in zip(on_device, host, strict=True):
            to.copy_(prepare(part), non_blocking=non_blocking)
        return on_device

    return _work(step, host)


def _with_host_work(lab, mib, *, non_blocking):
    fresh, rest = _pageable(lab, mib)
    rest, staging = rest.pin_memory(), torch.empty_like(fresh, pin_memory=True)
    on_device = [torch.empty_like(part, device=lab.device) for part in (fresh, rest)]
    sent = torch.cuda.Event()

    def step():
        on_device[1].copy_(rest, non_blocking=non_blocking)
        with lab.phase("host work"):
            sent.synchronize()  # the step before may still be reading the staging buffer
            staging.copy_(fresh)
        on_device[0].copy_(staging, non_blocking=non_blocking)
        sent.record()
        return on_device

    return _work(step, [fresh, rest])


def _work(step, host):
    return Work(step, bytes=sum(part.nbytes for part in host), inputs=host)
